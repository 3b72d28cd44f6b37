#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/core/site.hpp"

namespace lockstep {

/// One decision by a monitored value.
struct MonitorTurn {
  int64_t epoch = 0;
  int64_t step = 0;   ///< optimizer steps so far
  double value = 0;   ///< that this rank saw
  bool own = false;   ///< what this rank decided
  bool done = false;  ///< what came of it, after the ranks had agreed
};

/// Observations and decisions of a monitoring callback or scheduler on one rank.
struct MonitorLog {
  std::string name;  ///< "EarlyStopping"
  std::string monitor;
  SiteId site{};
  std::vector<MonitorTurn> turns;  ///< the first `most_turns`

  static constexpr size_t most_turns = 4096;
  void add(const MonitorTurn& turn) {
    if (turns.size() < most_turns) {
      turns.push_back(turn);
    }
  }
};

/// The state of one ModelCheckpoint on one rank. File names are without the folder.
struct CheckpointLog {
  std::string monitor;  ///< empty: none
  SiteId site{};
  bool added_by_trainer = false;
  std::string best;  ///< best_model_path; empty: nothing was saved
  std::optional<double> best_score;
  std::vector<std::pair<std::string, double>> kept;  ///< best_k_models
  std::string last;                                  ///< last_model_path
  int64_t saved = 0;                                 ///< files written
};

}  // namespace lockstep
