#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "properties/finding.hpp"

namespace lockstep {

/// One decision by a monitored value, on one rank.
struct DecisionTurn {
  int64_t epoch = 0;
  double value = 0;   ///< that this rank saw
  bool own = false;   ///< what this rank wanted
  bool done = false;  ///< what it did, after the ranks had agreed or without asking
};

struct RankDecisions {
  int32_t rank = 0;
  std::vector<DecisionTurn> turns;
  std::string result;  ///< "epoch=1-step=4.ckpt", "0.125"
};

/// A decision by a metric, as all ranks saw it: of a callback or a scheduler.
struct MonitoredDecision {
  std::string name;     ///< "ModelCheckpoint"
  std::string monitor;  ///< "val_loss"
  std::string deed;     ///< what `done` is: "saves"
  std::string result;   ///< what `result` is: "the best checkpoint"
  SiteId site{};        ///< of the callback
  SiteId logged_at{};   ///< of the statement that logs the metric, or none
  std::vector<RankDecisions> ranks;
};

/// Ranks that decide by a metric do the same and come to the same result (LS109, an error); where
/// they were made to do the same, they wanted the same (LS109, a warning). One finding a decision.
std::vector<Finding> decisions_agree(std::span<const MonitoredDecision> decisions);

}  // namespace lockstep
