#pragma once

#include <optional>
#include <vector>

#include "model/strategy/arguments.hpp"
#include "model/strategy/bucket.hpp"
#include "model/strategy/distributed.hpp"
#include "model/strategy/registry.hpp"
#include "model/strategy/replica.hpp"

namespace lockstep {

/// The arguments of torch's DistributedDataParallel that change what it does.
struct DataParallelOptions {
  bool find_unused_parameters = false;
  bool static_graph = false;
  bool gradient_as_bucket_view = false;
  bool broadcast_buffers = true;
  std::optional<Bytes> bucket_cap;  ///< none: 25 MiB, and 1 MiB for the bucket that is ready first
  bool join = false;                ///< torch's Join context around training
  bool divide_by_initial_world_size = true;  ///< of join
};

/// One process a device; gradients are averaged in buckets while backward still runs (PyTorch
/// DistributedDataParallel, reducer.cpp; VLDB 2020, Li et al.).
class DistributedDataParallel final : public DistributedStrategy {
 public:
  DistributedDataParallel(const TrainingPlan& plan, const DataParallelOptions& options);

  std::string_view name() const override { return "ddp"; }
  Program setup(Rank& rank) override;
  Program forward(Rank& rank, const Batch& batch, const StepOptions& options) override;
  Program backward(Rank& rank, const StepOptions& options) override;
  Program optimizer_step(Rank& rank) override;
  Program zero_gradients(Rank& rank, bool set_to_none) override;
  Program join(Rank& rank) override;
  Program teardown(Rank& rank) override;

  std::vector<Transfer> transfers_per_step() const override;
  Slice loss() const override { return replica_.loss(); }
  Ticket loss_ready() const override { return loss_ready_; }
  Replica& replica() override { return replica_; }
  /// Trainable parameters of each bucket, as indices into Replica::parameters(), in bucket order.
  BucketAssignment bucket_assignment() const;

 private:
  struct Bucket {
    std::vector<size_t> parameters;
    std::vector<Slice> parts;  ///< of `flat`, one a parameter
    Slice flat;
    size_t pending = 0;  ///< parameters whose gradient is not in the bucket yet
    Ticket packed;       ///< the last of them
    Ticket reduced;      ///< none while the all_reduce has not been launched
  };

  // Construction (semantics in ddp.cpp, in the order of PyTorch's constructor).
  Program verify_parameters(Rank& rank);
  BucketAssignment first_assignment() const;
  void make_buckets(Rank& rank, const BucketAssignment& assignment);
  void free_buckets(Rank& rank, std::vector<Bucket> buckets);

  // One iteration.
  Program synchronise_buffers(Rank& rank);
  Program rebuild_buckets(Rank& rank);
  void prepare_for_backward();
  void mark_unused_ready(Rank& rank);
  void mark_layer_ready(Rank& rank, size_t layer, Ticket done);
  void mark_ready(Rank& rank, const std::vector<size_t>& parameters, bool used, Ticket done);
  void launch_full_buckets(Rank& rank);
  void reduce_used_map(Rank& rank);
  Program finish_reduction(Rank& rank);
  Program unpack_buckets(Rank& rank);
  void raise_if_unfinished() const;
  double gradient_factor(const Rank& rank) const;

  // The shadow of an iteration, for a rank whose data have ended (ddp_join.cpp).
  Task<int64_t> agree_on_join(Rank& rank, int64_t own, Reduction reduction, std::string_view step);
  Program shadow_iteration(Rank& rank);
  Program adopt_last_joiner(Rank& rank);

  DataParallelOptions options_;
  Replica replica_;
  std::vector<size_t> trainable_;                    ///< indices into Replica::parameters()
  std::vector<size_t> position_of_;                  ///< in trainable_, by parameter
  std::vector<std::pair<size_t, size_t>> place_of_;  ///< bucket and part, by parameter
  std::vector<Bucket> buckets_;
  size_t next_bucket_ = 0;  ///< the first that has not been launched: strict order
  std::vector<bool> used_;  ///< by parameter, over the accumulation window
  Slice used_map_;          ///< int32 a parameter; no_buffer where none is needed
  Ticket used_map_reduced_;
  Slice scratch_;  ///< one int64 for what ranks agree on

  std::vector<size_t> ready_order_;  ///< parameters as their gradients came in the first backward
  bool record_order_ = true;
  bool rebuild_due_ = false;
  bool require_forward_sync_ = true;  ///< false after a forward under no_sync or without gradients
  bool delay_reduction_ = false;      ///< first iteration of a static graph
  bool synchronising_ = false;        ///< the backward that comes exchanges gradients
  bool backward_unfinished_ = false;  ///< the last one left a bucket that never filled
  int64_t active_ranks_ = 0;          ///< under join: that have data in this iteration
  int32_t buffer_root_ = 0;           ///< whose buffers count
  std::vector<Ticket> exchanged_;     ///< of the last step, which the host has not waited for
  Ticket loss_ready_;
};

/// "ddp", DDPStrategy.
StrategyEntry distributed_data_parallel();

}  // namespace lockstep
