#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "model/core/site.hpp"

namespace lockstep {

/// Whether less or more of a monitored metric is better.
enum class MonitorMode : uint8_t { min, max };

/// Arguments of Lightning's EarlyStopping.
struct EarlyStoppingSettings {
  std::string monitor;
  double min_delta = 0;
  int64_t patience = 3;
  MonitorMode mode = MonitorMode::min;
  bool strict = true;  ///< a missing metric raises
  bool check_finite = true;
  std::optional<double> stopping_threshold;
  std::optional<double> divergence_threshold;
  std::optional<bool> check_on_train_epoch_end;
  SiteId site{};  ///< of the callback, and of the decision that the ranks reduce
};

/// The effect of `save_last`: nothing, its own file, or a link to the last file saved.
enum class SaveLast : uint8_t { no, file, link };

/// Arguments of Lightning's ModelCheckpoint.
struct ModelCheckpointSettings {
  std::string folder;    ///< the resolved one; only its length is sent
  std::string filename;  ///< template; empty: "{epoch}-{step}"
  std::string monitor;   ///< empty: the newest is the best
  MonitorMode mode = MonitorMode::min;
  int64_t save_top_k = 1;  ///< -1: all
  SaveLast save_last = SaveLast::no;
  bool save_weights_only = false;
  bool auto_insert_metric_name = true;
  int64_t every_n_train_steps = 0;
  int64_t every_n_epochs = 1;
  std::optional<bool> save_on_train_epoch_end;
  bool enable_version_counter = true;
  bool added_by_trainer = false;
  SiteId site{};  ///< of the callback, and of the decision that the ranks reduce
  std::array<SiteId, 4> folder_site{};  ///< by Stage
  SiteId exists_site{};
  SiteId save_site{};
};

/// Arguments of Lightning's LearningRateMonitor.
struct LearningRateMonitorSettings {
  enum class Interval : uint8_t { by_scheduler, step, epoch };
  Interval interval = Interval::by_scheduler;
  bool log_momentum = false;
  bool log_weight_decay = false;
};

using CallbackSettings =
    std::variant<EarlyStoppingSettings, ModelCheckpointSettings, LearningRateMonitorSettings>;

}  // namespace lockstep
