#pragma once

#include <optional>

#include "model/strategy/data_parallel/distributed.hpp"
#include "model/strategy/data_parallel/dp.hpp"
#include "model/strategy/exchange/reducer.hpp"

namespace lockstep {

/// Lightning's DDP2 (up to 1.6, strategies/ddp2.py) as it was meant: one process in each node
/// drives all of its devices as dp does, and the nodes average what the devices of each have added
/// up, as ddp does.
class DataParallelInNodes final : public DistributedStrategy {
 public:
  DataParallelInNodes(const TrainingPlan& plan, const ReducerOptions& options,
                      bool broadcast_buffers);

  std::string_view name() const override { return "ddp2"; }
  Program setup(Rank& rank, Stage stage) override;
  Program forward(Rank& rank, const Batch& batch, const StepOptions& options) override;
  Program backward(Rank& rank, const StepOptions& options) override;
  Program optimizer_step(Rank& rank, const UpdateOptions& options) override;
  Program zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) override;
  Program teardown(Rank& rank) override;
  /// The mean over the devices of a node, which is made where their results are gathered: it never
  /// leaves the node.
  Program reduce(Rank&, Slice, Reduction, SiteId) override { co_return; }

  std::vector<int64_t> kinds_of_ranks(const RanksOfRun& run) override;
  std::vector<KnownDifference> known_differences() override { return node_.known_differences(); }
  std::vector<Transfer> transfers_per_step() const override;
  Slice loss() const override { return node_.loss(); }
  Ticket loss_ready() const override { return node_.loss_ready(); }
  Replica& replica() override { return node_.replica(); }
  bool steps_on_copies() const override { return node_.steps_on_copies(); }
  std::vector<Batch> parts(const Batch& batch) const override { return node_.parts(batch); }
  Replica& copy(size_t part) override { return node_.copy(part); }
  Slice loss_of(size_t part) const override { return node_.loss_of(part); }

 private:
  Program before_forward(Rank& rank, bool with_gradients);

  ReducerOptions options_;
  bool broadcast_buffers_;
  DataParallel node_;
  std::optional<Reducer> reducer_;  ///< of the wrapped model: in a fit
  bool require_forward_sync_ = true;
  bool synchronising_ = false;
  Transfers transfers_;  ///< between nodes
};

/// "ddp2", DDP2Strategy.
StrategyEntry data_parallel_in_nodes();

}  // namespace lockstep
