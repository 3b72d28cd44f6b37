#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "model/strategy/data_parallel/distributed.hpp"
#include "model/strategy/exchange/hooks/hook_arguments.hpp"
#include "model/strategy/exchange/reducer.hpp"
#include "model/strategy/registry.hpp"
#include "model/strategy/sharded/zero_redundancy.hpp"

namespace lockstep {

/// The arguments of torch's DistributedDataParallel that change what it does.
struct DataParallelOptions : ReducerOptions {
  bool broadcast_buffers = true;
  bool init_sync = true;      ///< compares the ranks' parameters, and sends those of rank 0
  bool seeded_alike = false;  ///< ranks draw the same first parameters
  bool join = false;          ///< torch's Join context around training, with its arguments:
  bool divide_by_initial_world_size = true;
  bool throw_on_early_termination = false;
  HookOptions hook{};
};

/// One process per device; gradients are averaged in buckets while backward still runs (PyTorch
/// DistributedDataParallel, distributed.py; VLDB 2020, Li et al.).
class DistributedDataParallel final : public DistributedStrategy {
 public:
  DistributedDataParallel(const TrainingPlan& plan, const DataParallelOptions& options);

  std::string_view name() const override { return "ddp"; }
  Program setup(Rank& rank, Stage stage) override;
  Program forward(Rank& rank, const Batch& batch, const StepOptions& options) override;
  Program backward(Rank& rank, const StepOptions& options) override;
  Program optimizer_step(Rank& rank, const UpdateOptions& options) override;
  Program zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) override;
  Task<bool> join(Rank& rank, MirroredIterations& others) override;
  Program teardown(Rank& rank) override;
  Task<WrittenBytes> save_checkpoint(Rank& rank, CheckpointRequest request, SiteId site) override;
  std::vector<KnownDifference> known_differences() override;
  bool counts_steps() const override;
  void add_step_kind(int64_t ahead, int64_t forwards, std::vector<int64_t>& kind) const override;
  void add_place(int64_t steps, int64_t forwards, std::vector<int64_t>& place) const override;
  int64_t steps_of_cycle(int64_t forwards) const override;
  void leave_out(int64_t steps, int64_t forwards) override;
  std::vector<int64_t> kinds_of_ranks(const RanksOfRun& run) override;
  Neighbourhoods neighbourhoods_of_ranks(const RanksOfRun& run) override;

  std::vector<Transfer> transfers_per_step() const override { return transfers_.all(); }
  Slice loss() const override { return replica_.loss(); }
  Ticket loss_ready() const override { return loss_ready_; }
  Replica& replica() override { return replica_; }
  /// Trainable parameters of each bucket, as indices into Replica::parameters(), in bucket order.
  /// Empty where the model is not wrapped.
  BucketAssignment bucket_assignment() const;

 private:
  bool is_wrapped() const { return reducer_.has_value(); }
  void allocate(Rank& rank);
  std::vector<Slice> module_state() const;
  Program before_forward(Rank& rank, bool with_gradients);
  Program prepare_manual_backward(Rank& rank, bool synchronise);
  bool must_send_buffers() const;

  // Uneven inputs (ddp_join.cpp): what an active rank sends to those whose data have ended, and
  // what these do meanwhile.
  Program notify_join_context(Rank& rank);
  Program announce_synchronisation(Rank& rank);
  Task<int32_t> common_rank(Rank& rank, int64_t candidate, std::string_view step);
  Task<int64_t> dividing_ranks(Rank& rank);
  Program shadow_iteration(Rank& rank);

  DataParallelOptions options_;
  Replica replica_;
  std::unique_ptr<BucketHook> hook_;         ///< null: the reducer exchanges gradients itself
  std::unique_ptr<ModelAverager> averager_;  ///< of a fit; null: nothing averages models
  std::optional<Reducer> reducer_;           ///< of the wrapped model: in a fit
  /// By optimizer; nothing where every rank updates all of its parameters.
  std::vector<std::optional<ZeroRedundancyUpdate>> redundancy_free_;
  bool require_forward_sync_ = true;  ///< false after a forward under no_sync or without gradients
  bool synchronising_ = false;        ///< the backward that comes exchanges gradients
  SharedNumber active_;               ///< under join: how many ranks still have data
  SharedNumber ended_;                ///< under join: how many make all ranks throw
  SharedNumber synchronises_;         ///< under join: how many will exchange gradients
  SharedNumber candidate_;            ///< under join: whose state is everybody's
  Ticket loss_ready_;
  Transfers transfers_;
};

/// "ddp", DDPStrategy.
StrategyEntry distributed_data_parallel();

}  // namespace lockstep
