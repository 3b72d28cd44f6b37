#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "model/strategy/collective_parts.hpp"
#include "model/strategy/distributed.hpp"
#include "model/strategy/replica.hpp"
#include "model/strategy/sharded/sharded_unit.hpp"
#include "model/strategy/sharded/wrap_policy.hpp"

namespace lockstep {

struct StrategyEntry;

/// Arguments of torch's FullyShardedDataParallel, with its defaults.
struct FullyShardedOptions {
  enum class Sharding : uint8_t {
    full,            ///< FULL_SHARD: parameters are freed between forward and backward
    grad_op,         ///< SHARD_GRAD_OP: they stay until their backward has ended
    none,            ///< NO_SHARD: nothing is sharded, gradients are all-reduced
    hybrid,          ///< HYBRID_SHARD: as `full` in a node, replicated across nodes
    hybrid_grad_op,  ///< _HYBRID_SHARD_ZERO2: as `grad_op` in a node
  };
  enum class BackwardPrefetch : uint8_t { none, before, after };

  Sharding sharding = Sharding::full;
  BackwardPrefetch backward_prefetch = BackwardPrefetch::before;
  bool limit_all_gathers = true;
  bool use_orig_params = true;
  bool sync_module_states = false;
  std::optional<DType> param_dtype;   ///< of gathered parameters; none: as stored
  std::optional<DType> reduce_dtype;  ///< of gradients in collectives; none: param_dtype
  WrapPolicy wrap;

  bool frees_after_forward() const {
    return sharding == Sharding::full || sharding == Sharding::hybrid;
  }
  bool is_hybrid() const {
    return sharding == Sharding::hybrid || sharding == Sharding::hybrid_grad_op;
  }
};

/// FSDP1 of torch (torch/distributed/fsdp/_runtime_utils.py): every wrapped module is a unit with
/// one flat parameter, of which each rank stores its part. A unit is gathered before its forward
/// and before its backward, and freed after each; its gradients are reduce-scattered, and every
/// rank updates its own parts.
class FullyShardedDataParallel final : public DistributedStrategy {
 public:
  FullyShardedDataParallel(const TrainingPlan& plan, const FullyShardedOptions& options);

  std::string_view name() const override { return "fsdp"; }
  Program setup(Rank& rank, Stage stage) override;
  Program forward(Rank& rank, const Batch& batch, const StepOptions& options) override;
  Program backward(Rank& rank, const StepOptions& options) override;
  Program optimizer_step(Rank& rank, const UpdateOptions& options) override;
  Program zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) override;

  Slice loss() const override { return replica_.loss(); }
  Ticket loss_ready() const override { return loss_ready_; }
  Replica& replica() override { return replica_; }
  std::vector<HeldParameter> held_parameters() override;
  Program gather_state(Rank& rank, SiteId site) override;
  bool accumulates_without_exchange() const override { return false; }

 private:
  struct Unit {
    WrappedModule module;
    ShardedUnit state;
    bool is_root = false;
    int32_t waits_for = 0;  ///< layers whose backward has yet to give its parameters gradients
    bool in_backward = false;
  };

  // Construction.
  void make_units(Rank& rank);
  ShardLayout layout_of(const std::vector<size_t>& parameters, int32_t ranks) const;
  Program make_groups(Rank& rank);
  Program send_states(Rank& rank);

  // Forward.
  Program enter_units(Rank& rank, size_t layer);
  void leave_units(Rank& rank, size_t layer, size_t next_layer);
  Program unshard(Rank& rank, Unit& unit);
  void reshard(Rank& rank, Unit& unit);
  void refuse_sharded_parameter(size_t layer) const;

  // Backward.
  void count_gradients(const std::vector<BackwardPass>& passes);
  Program begin_backward_of(Rank& rank, size_t layer);
  Program prefetch_backward(Rank& rank, size_t unit);
  Program end_backward_of(Rank& rank, size_t layer, Ticket done, bool synchronise);
  Program end_backward(Rank& rank, Unit& unit, Ticket done, bool synchronise);

  ShardedUnit::Exchange shard_exchange(std::string_view site) const;
  GradientDivision division(const Rank& rank) const;

  FullyShardedOptions options_;
  TrainingPlan computing_plan_;  ///< with the type of gathered parameters
  Replica replica_;
  std::vector<Unit> units_;            ///< outer ones before those in them; root first
  std::vector<size_t> unit_of_;        ///< by parameter
  std::vector<size_t> forward_order_;  ///< units as the last forward left them
  std::deque<Ticket> freed_;           ///< on the compute stream, oldest first
  GroupId shard_group_ = world_group;
  std::optional<GroupId> replica_group_;  ///< hybrid
  int32_t shard_ranks_ = 1;
  bool has_groups_ = false;
  Ticket weights_ready_{};
  Ticket loss_ready_{};
};

/// FullyShardedDataParallel as Lightning's FSDPStrategy makes it.
StrategyEntry fully_sharded_data_parallel();

}  // namespace lockstep
