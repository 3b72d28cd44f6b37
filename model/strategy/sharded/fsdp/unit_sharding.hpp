#pragma once

#include <optional>
#include <vector>

#include "model/strategy/data_parallel/distributed.hpp"
#include "model/strategy/layout/shard_kinds.hpp"
#include "model/strategy/layout/wrap_policy.hpp"
#include "model/strategy/local_model/gradient_clipping.hpp"
#include "model/strategy/local_model/replica.hpp"
#include "model/strategy/sharded/fsdp/sharded_checkpoint.hpp"
#include "model/strategy/sharded/fsdp/sharded_unit.hpp"
#include "model/strategy/sharded/fsdp/summoned_units.hpp"
#include "model/strategy/sharded/fsdp/unit_modules.hpp"

namespace lockstep {

/// The plan of layers that compute with parameters gathered in a type; none: as they are stored.
TrainingPlan computing_in(TrainingPlan plan, std::optional<DType> gathered);

/// What FSDP1, FSDP2 and FairScale's FSDP have in common: every wrapped module is a unit whose
/// parameters each rank stores a part of, and which it updates. A unit is gathered before its
/// forward and before its backward. What is gathered ahead, when a unit is freed, and when and how
/// its gradients are reduced is their own.
class UnitSharding : public DistributedStrategy {
 public:
  Program forward(Rank& rank, const Batch& batch, const StepOptions& options) final;
  Program backward(Rank& rank, const StepOptions& options) final;
  Program optimizer_step(Rank& rank, const UpdateOptions& options) override;
  Program zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) override;

  Slice loss() const override { return replica_.loss(); }
  Ticket loss_ready() const override { return loss_ready_; }
  Replica& replica() override { return replica_; }
  std::vector<HeldParameter> held_parameters() override;
  std::vector<KnownDifference> known_differences() override;
  Program end_whole_parameters(Rank& rank) final;

 protected:
  struct Unit {
    WrappedModule module;
    ShardedUnit state;
    bool is_root = false;
    bool is_entered = false;      ///< by the forward under way
    bool gets_gradients = false;  ///< by the backward under way
    bool has_backward = false;    ///< some layer of it is in the backward under way
    bool in_backward = false;
    bool has_reduced = false;           ///< in the backward under way
    bool stops_second_forward = false;  ///< of a checkpointed segment: it does not come to its end
    std::optional<size_t> ends_at{};    ///< the layer behind whose backward it has its gradients
    size_t gathered_at = 0;             ///< the layer before which the forward gathered it
  };

  // The way through the layers (unit_sharding_walk.cpp) asks for these.
  virtual void begin_forward(const StepOptions&) {}
  /// Throws what clipping and the optimizer raise for the kinds of tensors that they are given.
  virtual void check_tensors(const UpdateOptions&) const {}
  /// What an optimizer's step is about.
  struct StepTensors {
    std::vector<OptimizedTensor*> tensors;
    std::vector<Slice> gradients;  ///< those of them that exist
    std::vector<Slice> counted;    ///< in the norm
    std::vector<size_t> given;     ///< parameters of units
  };
  /// Updates them; throws what the optimizer raises for the kinds of tensors that it is given.
  virtual Program update(Rank& rank, const OptimizerPlan& optimizer, const StepTensors& step);
  /// Where the update of these strategies runs.
  ComputeOptions place_of_update() const {
    const DeviceId device = offload_ == Offload::none ? DeviceId{0} : host_device;
    return {stream(queue::compute, device), {}, site_id(steps_.update)};
  }
  /// Whether zero_grad reaches gradients that have not been reduced.
  virtual bool zeroes_whole_gradients() const { return true; }
  /// The layer runs next; throws what its forward raises: by default where its input is not
  /// of the type of its weights.
  virtual void check_forward(size_t layer) const;
  /// The same for its backward, or a forward that runs again there.
  virtual void check_backward(size_t) const {}
  /// Gathers a unit that is not gathered, before the computation of the layer.
  virtual Program unshard(Rank& rank, Unit& unit, size_t layer) = 0;
  /// Frees a unit, if it is gathered and sharded at all.
  virtual void reshard(Rank& rank, Unit& unit);
  /// The forward has entered the unit before the layer; its backward has begun.
  virtual Program prefetch_forward(Rank&, Unit&, size_t) { co_return; }
  virtual Program prefetch_backward(Rank&, Unit&) { co_return; }
  /// The forward has left the unit.
  virtual void reshard_after_forward(Rank& rank, Unit& unit) = 0;
  /// Whether a forward that runs again in the backward frees the unit where it ends.
  virtual bool frees_in_every_forward(const Unit&) const { return false; }
  /// Whether a segment keeps no node of its first forward, and its backward is that of the second.
  virtual bool makes_graph_again(const CheckpointedSegment&) const { return false; }
  /// Whether the segment holds the unit's module, and more: then its hooks run again, too.
  static bool is_inside(const Unit& unit, const CheckpointedSegment& segment);
  /// Sets Unit::ends_at and Unit::has_backward for a backward of these. By default where flat
  /// parameters get their gradients.
  virtual void find_ends(const std::vector<BackwardPass>& passes);
  /// The last backward of the layer has been issued: ends the units whose last layer it was.
  virtual Program end_units_behind(Rank& rank, size_t layer, Ticket done, bool synchronise);
  /// The unit has all its gradients: frees and reduces it.
  virtual Program end_backward(Rank& rank, Unit& unit, Ticket done, bool synchronise) = 0;
  /// The backward of all layers has been issued.
  virtual Program finish_backward(Rank& rank, bool synchronise) = 0;
  /// Behind a backward whose units settle their gradients on the post-backward stream: the
  /// optimizer sees them, and what lies in host memory as well is freed.
  void await_settled(Rank& rank, SiteId site);
  /// The unit whose forward ended before this one's, and whose backward therefore comes next, if it
  /// has yet to be gathered for it.
  Unit* next_to_gather(const Unit& unit);

  /// What its operations are called in findings.
  struct Steps {
    std::string_view gather_unit, wait_for_unit, share_norm, update, zero_gradients, gather_state,
        make_groups, exchange_plans;
  };

  UnitSharding(const TrainingPlan& plan, TrainingPlan computing, const Steps& steps);

  /// Finds the first layer whose input is not of the type in which its weights are gathered. These
  /// modules cast what they get; `widens`: and give what they make in the type of the shards. Batch
  /// norms that the policy keeps apart cast for themselves.
  void follow_types(const std::vector<WrappedModule>& casting, bool widens,
                    const WrapPolicy& wrap = {});
  /// A parameter belongs to the innermost module that holds its layer. `layout_of`: how the
  /// parameters of a unit are cut over so many ranks.
  template <class LayoutOf>
  void make_units(Rank& rank, const WrapPolicy& wrap, const ShardTypes& types, int32_t index,
                  const LayoutOf& layout_of);
  /// Tells ranks apart that cut the parameters of each unit in this way.
  template <class LayoutOf>
  void divide_by_pieces(ShardKinds& kinds, const WrapPolicy& wrap, const LayoutOf& layout_of);
  /// Parameters of layers that no unit has: every rank holds them whole, and their gradients are
  /// its own.
  void make_ignored(Rank& rank, const WrapPolicy& wrap);
  void zero_ignored(Rank& rank, size_t optimizer, bool set_to_none);
  /// Whether the optimizer is given a gradient of a unit; of a parameter that is in none.
  bool updates_shards(size_t optimizer) const;
  bool updates_ignored(size_t optimizer) const;
  void forget_optimizer(Rank& rank);
  /// Of the argument that leaves them out, if any of them is trained by several ranks.
  void add_ignored_difference(std::string_view argument, std::vector<KnownDifference>& known) const;
  /// Groups of `in_group` neighbouring ranks, and of those with equal places in them. Every rank
  /// makes all of them.
  struct Groups {
    GroupId shard = world_group;
    GroupId replica = world_group;
  };
  Task<Groups> make_groups(Rank& rank, int32_t in_group);
  int64_t elements_of(size_t parameter) const;

  ShardedUnit::Exchange shard_exchange(std::string_view site) const {
    return {shard_group_, site_id(site)};
  }
  const TrainingPlan& computing_plan() const { return computing_plan_; }

  // Checkpoints (unit_sharding_checkpoint.cpp).
  /// What one holds now.
  ShardedCheckpoint checkpoint() const;
  /// A unit on its way into a state_dict.
  struct GatheredUnit {
    const Unit* unit = nullptr;
    Slice whole{};  ///< none: as the replica has it
  };
  /// A copy of the unit's tensors on the device, as a state_dict keeps it.
  Slice clone_of(Rank& rank, const Unit& unit, const Slice& whole);
  /// The whole parameters, with the state of this rank's parts alone.
  Bytes own_checkpoint_bytes(const CheckpointRequest& request) const;
  /// Rank 0 writes everything, or every rank its part; with the file's name before it.
  Task<WrittenBytes> write_checkpoint(Rank& rank, CheckpointRequest request, bool in_parts,
                                      SiteId site);
  /// Brings the parts of all ranks together beside the model, for a file: `whole` of them are
  /// copied to host memory, if `host` is given.
  Program gather_for_file(Rank& rank, int64_t part, int64_t whole, HostCopy* host);

  int64_t norm_elements() const;

  Steps steps_;
  TrainingPlan computing_plan_;  ///< with the type of gathered parameters
  Replica replica_;
  std::vector<Unit> units_;  ///< outer ones before those in them; root first
  static constexpr size_t no_unit = static_cast<size_t>(-1);
  std::vector<size_t> unit_of_;        ///< by parameter
  std::vector<size_t> ignored_;        ///< parameters that are in none
  std::vector<size_t> forward_order_;  ///< units as the last forward left them
  GroupId shard_group_ = world_group;
  std::optional<GroupId> replica_group_;  ///< of ranks that hold the same shards
  int32_t shard_ranks_ = 1;
  TensorRanks tensor_ranks_{};  ///< where several ranks compute each replica together
  /// Set before make_units(): units keep their shards in host memory.
  enum class Offload : uint8_t { none, replacing_gradients, adding_gradients };
  Offload offload_ = Offload::none;
  bool clips_by_whole_norm_ = true;  ///< else every rank by that of its own shards
  bool clips_by_own_norm_ = false;   ///< a step has done so
  /// The optimizer is given one flat parameter for each unit, else pieces of the original ones.
  bool optimizes_flat_ = false;
  bool updates_by_own_norms_ = false;  ///< a step has taken norms of what this rank holds
  /// Lightning's precision plugin, if it raises where it should clip by norm.
  std::string_view plugin_without_norm_{};
  bool norm_by_parameter_ = false;        ///< the norm travels as one number for each parameter
  std::vector<bool> has_stepped_;         ///< by optimizer
  std::optional<size_t> uncast_layer_{};  ///< it raises, for its input is not of its weights' type
  SummonedUnits summoned_;
  Ticket weights_ready_{};
  Ticket loss_ready_{};

 private:
  /// Whether the optimizer is given some parameter of the unit.
  bool is_given(const Unit& unit, const OptimizerPlan& optimizer) const;
  StepTensors tensors_of_step(const OptimizerPlan& optimizer);
  std::vector<UnitModule> wrapped_units(const WrapPolicy& wrap) const;
  /// By parameter: whether the optimizer does the same with parts of them. Flat ones are reduced
  /// together, others as they get gradients.
  std::vector<int64_t> treatments(const std::vector<size_t>& parameters, bool is_flat) const;
  /// Layers that the forward runs, in order.
  std::vector<size_t> running_layers(const StepOptions& options) const;
  Program enter_units(Rank& rank, size_t layer);
  void leave_units(Rank& rank, size_t layer, size_t next_layer);
  Program begin_layer(Rank& rank, size_t layer);
  template <class Chosen>
  Program begin_units(Rank& rank, size_t layer, Chosen is_chosen);
  Program run_again(Rank& rank, const CheckpointedSegment& segment, std::vector<size_t> layers);
};

template <class LayoutOf>
void UnitSharding::divide_by_pieces(ShardKinds& kinds, const WrapPolicy& wrap,
                                    const LayoutOf& layout_of) {
  for (const UnitModule& unit : wrapped_units(wrap)) {
    const ShardLayout layout = layout_of(unit.parameters);
    kinds.divide(layout, treatments(unit.parameters, layout.is_flat()));
  }
}

template <class LayoutOf>
void UnitSharding::make_units(Rank& rank, const WrapPolicy& wrap, const ShardTypes& types,
                              int32_t index, const LayoutOf& layout_of) {
  unit_of_.assign(replica_.parameters().size(), no_unit);
  constexpr uint64_t variant = 0;  // seed_everything: every rank has drawn the same model
  for (UnitModule& wrapped : wrapped_units(wrap)) {
    for (const size_t parameter : wrapped.parameters) {
      unit_of_[parameter] = units_.size();
    }
    const ShardLayout layout = layout_of(wrapped.parameters);
    // Without mixed precision, it is gathered and reduced as it is stored.
    const bool keeps_type = wrapped.module.first == wrapped.module.last &&
                            is_apart(replica_.network(), wrap, wrapped.module.first);
    const ShardTypes own =
        keeps_type ? ShardTypes{types.stored, types.stored, types.stored} : types;
    units_.push_back({wrapped.module,
                      ShardedUnit(replica_, std::move(wrapped.parameters), layout, own),
                      wrapped.is_root});
    if (offload_ != Offload::none) {
      units_.back().state.offload(offload_ == Offload::adding_gradients);
    }
    units_.back().state.allocate(rank, index, variant);
  }
}

}  // namespace lockstep
