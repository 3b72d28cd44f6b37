#pragma once

#include "model/strategy/exchange/collective_parts.hpp"
#include "model/strategy/strategy.hpp"

namespace lockstep {

/// Common base of strategies with one process per device: how values cross ranks, and that
/// data are divided over all of them.
class DistributedStrategy : public Strategy {
 public:
  explicit DistributedStrategy(const TrainingPlan& plan) : plan_(&plan) {}

  Program reduce(Rank& rank, Slice data, Reduction reduction, SiteId site) override;
  Program barrier(Rank& rank, SiteId site) override;
  Program broadcast(Rank& rank, Slice data, int32_t root, SiteId site) override;
  Program all_gather(Rank& rank, Slice part, Slice whole, SiteId site) override;
  bool has_process_group() const override { return true; }

 protected:
  const TrainingPlan& plan() const { return *plan_; }
  /// The ranks that the calls above address: all, unless some run no trainer. The first question
  /// may make their group, a collective of all ranks.
  virtual Task<GroupId> trainers(Rank& /*rank*/) { co_return world_group; }

 private:
  const TrainingPlan* plan_;
};

}  // namespace lockstep
