#pragma once

#include <optional>
#include <vector>

#include "model/strategy/sharded/fairscale/reduction_bucket.hpp"
#include "model/strategy/sharded/fsdp/unit_sharding.hpp"

namespace lockstep {

struct StrategyEntry;

/// Arguments of FairScale's FullyShardedDataParallel as Lightning 1.x passes them.
struct FairScaleShardingOptions {
  bool reshard_after_forward = true;  ///< of units but the outermost one, which is kept
  double bucket_cap_mb = 25;          ///< at most 0: every unit is reduced by itself
  bool cpu_offload = false;  ///< shards, their gradients and optimizer state in host memory
  std::optional<DType> compute_dtype;  ///< of gathered parameters and layers; none: as stored
  bool state_dict_to_cpu = true;       ///< else every GPU has a clone of each tensor
  bool fp32_reduce_scatter = false;    ///< gradients travel in the type that is stored
  WrapPolicy wrap;
  /// Modules wrap themselves in configure_sharded_model, and Lightning sees no wrapper.
  bool wrapped_by_model = false;
  /// FullyShardedDataParallel.clip_grad_norm_; Lightning calls torch's function, by which every
  /// rank takes the norm of its own shards.
  bool clips_by_whole_norm = false;
  bool refuses_norm = false;  ///< FullyShardedNativeMixedPrecisionPlugin does not clip by norm
};

/// FairScale's own FSDP (fairscale/nn/data_parallel/fully_sharded_data_parallel.py), from which
/// torch's came: units with one flat parameter each, gathered when their layers begin, without any
/// prefetch. Gradients of all units are collected and reduced together.
class FairScaleFullySharded final : public UnitSharding {
 public:
  FairScaleFullySharded(const TrainingPlan& plan, const FairScaleShardingOptions& options);

  std::string_view name() const override { return "ddp_fully_sharded"; }
  Program setup(Rank& rank, Stage stage) override;
  Task<WrittenBytes> save_checkpoint(Rank& rank, CheckpointRequest request, SiteId site) override;
  std::vector<int64_t> kinds_of_ranks(const RanksOfRun& run) override;
  /// It gathers the whole parameters for it.
  Program read_state_dict(Rank& rank, SiteId site) override;
  bool has_whole_parameters() const override { return true; }
  Program begin_whole_parameters(Rank& rank) override;
  bool accumulates_without_exchange() const override { return !options_.wrapped_by_model; }

 private:
  ShardLayout layout_of(const std::vector<size_t>& parameters) const;
  Program make_own_groups(Rank& rank);
  /// Null: not cloned.
  Program gather_weights(Rank& rank, std::vector<Slice>* clones);
  void make_bucket(Rank& rank);

  // Forward and backward.
  bool holds_gradient_of(const Unit& unit, const CheckpointedSegment& segment) const;
  bool reshards(const Unit& unit) const { return options_.reshard_after_forward && !unit.is_root; }
  Program unshard(Rank& rank, Unit& unit, size_t layer) override;
  void reshard_after_forward(Rank& rank, Unit& unit) override;
  void check_backward(size_t layer) const override;
  bool frees_in_every_forward(const Unit& unit) const override { return reshards(unit); }
  bool makes_graph_again(const CheckpointedSegment& segment) const override {
    return segment.recomputation == Recomputation::fairscale;
  }
  Program end_units_behind(Rank& rank, size_t layer, Ticket done, bool synchronise) override;
  Program end_backward(Rank& rank, Unit& unit, Ticket done, bool synchronise) override;
  Program finish_backward(Rank& rank, bool synchronise) override;

  FairScaleShardingOptions options_;
  GroupId reduce_group_ = world_group;
  std::optional<ReductionBucket> bucket_;
};

/// "ddp_fully_sharded", DDPFullyShardedStrategy.
StrategyEntry fairscale_fully_sharded();

}  // namespace lockstep
