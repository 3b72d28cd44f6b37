#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "model/strategy/local_model/replica.hpp"
#include "model/strategy/pipeline/stage_cuts.hpp"
#include "model/strategy/sharded/fsdp/fully_shard_options.hpp"
#include "model/strategy/sharded/fsdp/sharded_unit.hpp"
#include "model/strategy/strategy.hpp"

namespace lockstep {

/// The ranks with the same stages.
struct ShardingRanks {
  GroupId shard = world_group;       ///< those with the other parts of the same parameters
  std::optional<GroupId> replica{};  ///< those with the same parts, if there are any
  int32_t shards = 1;
  int32_t index = 0;     ///< of this rank among those with other parts
  int32_t replicas = 1;  ///< those with the same parts, this one among them
  TensorRanks tensor{};  ///< those that compute the layers with this one
};

/// The stages of a rank, each of which torch's fully_shard wraps, with modules in it. A pipeline
/// drives them in its own way (torch/distributed/pipelining/stage.py): gradients of micro-batches
/// are added up whole, parameters stay gathered from the first backward of a stage on, and behind
/// its last one perform_reduce_grad() frees and reduces one module after the other.
class ShardedStages {
 public:
  /// The replica outlives it. `stored`: the type of the parts, their gradients and their state.
  ShardedStages(Replica& replica, FullyShard2Options options, DType stored)
      : replica_(&replica), options_(std::move(options)), stored_(stored) {}

  /// Allocates the parts of this rank and gives them their first values.
  void add_stage(Rank& rank, const ShardingRanks& ranks, int32_t stage, const StageLayers& layers);
  /// What is gathered from now on comes after what the compute stream has got so far.
  void begin_step(Rank& rank);

  // A forward.
  void enter_layer(Rank& rank, size_t layer);
  void leave_layer(Rank& rank, size_t layer);
  // A backward, from the last layer to the first.
  void begin_backward(int32_t stage, int32_t micro_batch);
  void enter_backward(Rank& rank, size_t layer);
  void leave_backward(Rank& rank, size_t layer);
  void end_backward(Rank& rank, int32_t stage);
  /// Where the gradients of weights come apart from those of inputs: torch computes those of the
  /// parameters that the modules had when the backward of the input began (_backward.py,
  /// stage_backward_input), which are not the whole ones where these had been freed.
  bool finds_weights(int32_t micro_batch, size_t layer);
  /// Those under way are so many later.
  void rename_micro_batches(int32_t later);
  /// Throws what torch raises where they have been freed since then.
  void find_weights_again(int32_t stage, int32_t micro_batch) const;
  bool has_lost_gradients() const { return has_lost_gradients_; }

  /// unshard() and reshard() of all its modules, as schedules of several stages call them.
  void gather(Rank& rank, int32_t stage);
  void free(Rank& rank, int32_t stage);
  /// perform_reduce_grad(): gradients of the parts become the mean over ranks, times `factor`.
  /// Returns the bytes of each reduction, before it.
  std::vector<Bytes> reduce_gradients(Rank& rank, int32_t stage, double factor);

  /// Clips and updates the parts. `pipeline`: the ranks with the other stages, if there are any.
  Program optimizer_step(Rank& rank, const UpdateOptions& options,
                         const std::optional<GroupId>& pipeline);
  void zero_gradients(Rank& rank, size_t optimizer, bool set_to_none);
  void forget_optimizer(Rank& rank);
  /// By parameter, parts in their order.
  std::vector<HeldParameter> held_parameters() const;
  /// Of the parts: parameters, and what optimizers keep of them.
  Bytes bytes_of_parts(bool with_optimizer) const;

 private:
  struct Unit {
    int32_t stage = 0;
    WrappedModule module;
    bool is_root = false;
    bool in_backward = false;
    ShardedUnit state;
    std::set<int32_t> found_for{};  ///< micro-batches whose weight gradients are yet to come
  };
  struct StepTensors {
    std::vector<OptimizedTensor*> tensors;
    std::vector<Slice> gradients;  ///< those of them that exist
    std::vector<Slice> counted;    ///< in the norm
    std::vector<size_t> given;     ///< parameters of which this rank has a part
    int64_t trained = 0;           ///< parameters of its stages
  };

  ShardedUnit::Exchange shard_exchange(std::string_view site) const;
  GradientDivision division() const;
  void gather_unit(Rank& rank, Unit& unit);
  void free_unit(Rank& rank, Unit& unit);
  void settle(Rank& rank, Unit& unit);
  void gather_ahead(Rank& rank, const Unit& unit);
  void scale(Rank& rank, int32_t stage, double factor);
  StepTensors tensors_of_step(const OptimizerPlan& optimizer);
  void clip(Rank& rank, const UpdateOptions& options, const StepTensors& step,
            const std::optional<GroupId>& pipeline);
  DeviceId device() const { return options_.offload ? host_device : DeviceId{0}; }

  Replica* replica_;
  FullyShard2Options options_;
  DType stored_;
  ShardingRanks ranks_{};
  std::vector<Unit> units_;  ///< of each stage the root first, outer ones before those in them
  Ticket weights_ready_{};
  bool has_lost_gradients_ = false;
};

/// By rank of those with the same stages, numbers that are equal where parts of all units are.
std::vector<int64_t> kinds_of_parts(const Replica& replica, const FullyShard2Options& options,
                                    const std::vector<StageLayers>& stages, int32_t shards);

}  // namespace lockstep
