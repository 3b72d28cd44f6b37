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
  int64_t kind_of_step(int64_t ahead) const override;
  int64_t place(int64_t ahead) const override;
  int64_t steps_of_cycle() const override;
  void leave_out(int64_t steps) override;
  KnownDifference difference() const override;

 private:
  /// The level that averages in a step; as many as there are: none.
  size_t level_of(int64_t step) const;
  bool is_of_all(size_t level, int32_t ranks) const {
    return level < levels_.size() && levels_[level].group_size == ranks;
  }

  std::vector<AveragingLevel> levels_;
  std::vector<GroupId> groups_;  ///< of this rank, by level
  int64_t warmup_steps_;
  int64_t steps_ = 0;
  int64_t of_all_ = 0;       ///< averagings of all ranks
  int32_t ranks_ = 0;        ///< of the world
  int64_t last_of_all_ = 0;  ///< steps at the last of them
};

}  // namespace lockstep
