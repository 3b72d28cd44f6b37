#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "model/strategy/sharded/fsdp/unit_sharding.hpp"

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
  bool forward_prefetch = false;  ///< from the second forward on the next unit is gathered ahead
  bool limit_all_gathers = true;
  bool use_orig_params = true;
  bool sync_module_states = false;
  bool cpu_offload = false;     ///< shards, their gradients and optimizer state in host memory
  bool saves_in_parts = false;  ///< `state_dict_type: sharded`: every rank writes its own
  /// Lightning 2: a checkpoint has the optimizer's state of all ranks; before it that of rank 0.
  bool gathers_optimizer_state = true;
  std::optional<DType> param_dtype;   ///< of gathered parameters; none: as stored
  std::optional<DType> reduce_dtype;  ///< of gradients in collectives; none: param_dtype
  bool casts_input = true;            ///< of the model, to param_dtype
  bool casts_norms = true;            ///< inputs of batch norms that are apart, to fp32: torch 2.1
  /// Lightning up to 2.0 calls torch's clip_grad_norm_, by which every rank takes the norm of its
  /// own shards; mixed precision refuses it there.
  bool clips_by_own_norm = false;
  std::string_view mixed_plugin = "FSDPMixedPrecisionPlugin";  ///< which refuses it, up to 2.0
  std::string_view name = "fsdp";
  int32_t shard_ranks = 0;  ///< hybrid: neighbours that shard, by a device mesh; 0: those of a node
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
class FullyShardedDataParallel final : public UnitSharding {
 public:
  FullyShardedDataParallel(const TrainingPlan& plan, const FullyShardedOptions& options);

  std::string_view name() const override { return options_.name; }
  Program setup(Rank& rank, Stage stage) override;
  Task<WrittenBytes> save_checkpoint(Rank& rank, CheckpointRequest request, SiteId site) override;
  std::vector<int64_t> kinds_of_ranks(const RanksOfRun& run) override;
  Neighbourhoods neighbourhoods_of_ranks(const RanksOfRun& run) override;
  std::vector<KnownDifference> known_differences() override;
  /// Its hooks gather every unit, and keep a clone of each on every GPU.
  Program read_state_dict(Rank& rank, SiteId site) override;

  void in_step_hook(bool runs) override;
  bool has_whole_parameters() const override { return true; }
  Program begin_whole_parameters(Rank& rank) override;

 private:
  // Construction.
  ShardLayout layout_of(const std::vector<size_t>& parameters, int32_t ranks) const;
  /// Ranks that shard a unit, where others have it as well.
  int32_t hybrid_ranks(int32_t ranks_of_node) const;
  Program send_states(Rank& rank);

  // Forward and backward.
  void begin_forward(const StepOptions& options) override;
  void check_forward(size_t layer) const override;
  Program unshard(Rank& rank, Unit& unit, size_t layer) override;
  void reshard(Rank& rank, Unit& unit) override;
  void reshard_after_forward(Rank& rank, Unit& unit) override;
  Program prefetch_forward(Rank& rank, Unit& unit, size_t layer) override;
  Program prefetch_backward(Rank& rank, Unit& unit) override;
  bool frees_in_every_forward(const Unit& unit) const override;
  Program gather_next(Rank& rank, const Unit& unit);
  Program end_backward(Rank& rank, Unit& unit, Ticket done, bool synchronise) override;
  Program finish_backward(Rank& rank, bool synchronise) override;

  // Checkpoints (fsdp_checkpoint.cpp).
  /// What is wrong with a weight of another unit. Empty: nothing.
  std::string shared_weight_outside() const;
  void drop_narrower(Rank& rank, Unit& unit);
  /// Null: not copied to host memory; not cloned.
  void take_weights(Rank& rank, const GatheredUnit& gathered, HostCopy* host,
                    std::vector<Slice>* clones);
  Program gather_weights(Rank& rank, HostCopy* host, std::vector<Slice>* clones);
  Program gather_optimizer_state(Rank& rank, size_t optimizer, HostCopy* host);
  void refuse_flat_parameters(const Rank& rank, SiteId site) const;
  Bytes keys_bytes(size_t optimizer) const;
  Program exchange_keys(Rank& rank, size_t optimizer);
  Program gather_states_of(Rank& rank, const Unit& unit, size_t optimizer, HostCopy* host);
  std::vector<const Unit*> units_with_state(size_t optimizer) const;
  int64_t file_elements(const Unit& unit, int32_t rank) const;

  GradientDivision division(const Rank& rank) const;
  bool shards_over_one_rank() const {
    return options_.is_hybrid() && shard_ranks_ == 1 && replica_group_;
  }

  FullyShardedOptions options_;
  std::deque<Ticket> freed_;         ///< on the compute stream, oldest first
  std::vector<size_t> first_order_;  ///< units as the first forward entered them
  bool has_first_order_ = false;
  bool has_graph_ = false;  ///< the last forward computes gradients
  bool in_step_hook_ = false;
  bool shows_root_until_end_ = false;  ///< of the step hook
  bool has_groups_ = false;
  std::vector<TiedOverModules> tied_;  ///< a layer with a weight of another unit raises
};

/// FullyShardedDataParallel as Lightning's FSDPStrategy makes it.
StrategyEntry fully_sharded_data_parallel();
/// The same as DDPFullyShardedNativeStrategy of Lightning 1.7 to 1.9 makes it: "fsdp_native".
StrategyEntry native_fully_sharded();

}  // namespace lockstep
