#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "properties/finding.hpp"

namespace lockstep {

/// Begins the consequence of LS302 that says that callbacks may decide differently; whoever knows
/// what they decided replaces it.
inline constexpr std::string_view callbacks_that_monitor = "callbacks that monitor it";

/// The value that one rank logged under a key at the end of an epoch.
struct RankMetric {
  int32_t rank = 0;
  double value = 0;                ///< that it shows
  double own = 0;                  ///< the same of its batches alone
  int64_t batch_sizes = 0;         ///< of them, for a mean
  int64_t common_batch_sizes = 0;  ///< what an averaging of int64 gave; 0: there was none
  int64_t batches = 0;
  bool is_of_missing_loss = false;  ///< it is made of a placeholder for the loss of another rank
};

/// One key, as all ranks logged it.
struct GlobalMetric {
  std::string key;
  SiteId site{};
  bool is_object = false;
  std::string reduction = "mean";  ///< of batches and ranks: mean, sum, max, min
  bool synchronised = false;
  bool rank_zero_only = false;
  int64_t world_size = 0;  ///< all ranks; `ranks` may be fewer
  int64_t elements = 0;    ///< elements summed within the value itself, as in a loss
  /// Relative; of a value of a network that computes in 16 bits or mixed precision: one device
  /// makes its steps from other roundings, so that its weights are no longer the same.
  double network_error = 0;
  /// Another finding explains why: ranks evaluate samples twice or never, or lose updates.
  bool is_told_already = false;
  bool is_stale = false;         ///< it counts earlier epochs too, as another finding says
  bool is_out_of_reach = false;  ///< of sync_dist, until it is moved to the device
  bool is_stand_in = false;      ///< a placeholder for a loss that is not computed
  bool of_last_batch = false;    ///< not of an epoch: a rank's value is a sample
  int64_t chunks = 1;            ///< of a batch, on replicas that log one after the other (dp)
  bool is_monitored = false;     ///< a callback or scheduler decides by it
  bool in_training = false;      ///< of training batches: a rank's value is a sample
  std::string rule;              ///< why it may not be averaged; empty: it may
  /// A possible cause if it differs from the value of all samples, and the remedy; empty: nothing
  /// can be said, as it depends on more than samples.
  std::string other_rule;
  std::string other_remedy;
  /// Why ranks have no loss of their own, and the remedy; empty: all have.
  std::string why_without_loss;
  std::string loss_remedy;
  std::string averaging;  ///< the row of the averaging table that applies
  std::string remedy;     ///< where the rule is broken; of an object where its value is wrong
  std::vector<RankMetric> ranks;        ///< those that logged it, ascending
  std::optional<double> single_device;  ///< of all samples at once
  /// `single_device` for the samples that the ranks took, each as often as they did; nothing where
  /// that is once, or not known.
  std::optional<double> of_taken_samples;
  /// It is computed at once from what all ranks gathered: nothing is averaged.
  bool is_of_gathered = false;
};

/// Whether every rank shows what one device does, up to rounding; nothing where that is not known.
std::optional<bool> agrees_with_one_device(const GlobalMetric& metric);

/// Whether it is not that of all samples only because ranks took some of them twice or never.
bool is_explained_by_samples(const GlobalMetric& metric);

/// A logged value is that of all samples: LS307 a mean that lost the fraction of its weight, LS302
/// a value of one rank shown as if it were the whole, LS301 a mean of what cannot be averaged. One
/// finding a defect: a key has the first and the last where the mean stays wrong with its fraction.
/// The last needs `single_device`, and a rule that speaks against the mean.
std::vector<Finding> metric_is_global(std::span<const GlobalMetric> metrics);

}  // namespace lockstep
