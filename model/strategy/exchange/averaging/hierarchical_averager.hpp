#pragma once

#include "model/strategy/exchange/averaging/model_averager.hpp"

namespace lockstep {

/// Groups of several sizes, each with a period of its own: in a step the group with the longest
/// period that divides the step's number averages, and no other
/// (model_averaging/hierarchical_model_averager.py). Steps count from 0, warm-up included.
class HierarchicalModelAverager final : public ModelAverager {
 public:
  HierarchicalModelAverager(Replica& replica, std::vector<AveragingLevel> levels,
                            int64_t warmup_steps)
      : ModelAverager(replica), levels_(std::move(levels)), warmup_steps_(warmup_steps) {}

  Program begin(Rank& rank) override;
  Task<Bytes> average(Rank& rank, size_t optimizer) override;
  KnownDifference difference() const override;

 private:
  std::vector<AveragingLevel> levels_;
  std::vector<GroupId> groups_;  ///< of this rank, by level
  int64_t warmup_steps_;
  int64_t steps_ = 0;
  int64_t of_all_ = 0;       ///< averagings of all ranks
  int64_t last_of_all_ = 0;  ///< steps at the last of them
};

}  // namespace lockstep
