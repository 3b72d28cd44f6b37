#pragma once

#include <optional>
#include <vector>

#include "model/strategy/local_model/step_over_ranks.hpp"
#include "model/strategy/sharded/fsdp/fully_shard_options.hpp"
#include "model/strategy/sharded/fsdp/unit_sharding.hpp"
#include "model/strategy/tensor/tensor_mesh.hpp"

namespace lockstep {

struct StrategyEntry;

/// FSDP2 of torch (torch/distributed/fsdp/_fully_shard): parameters are cut by rows, each by
/// itself, and a module's travel together. The module before is always gathered ahead in a
/// backward.
class FullyShard2 final : public UnitSharding {
 public:
  FullyShard2(const TrainingPlan& plan, const FullyShard2Options& options);

  std::string_view name() const override { return "ModelParallelStrategy"; }
  Program setup(Rank& rank, Stage stage) override;
  std::vector<HeldParameter> held_parameters() override;
  std::vector<KnownDifference> known_differences() override;
  Task<WrittenBytes> save_checkpoint(Rank& rank, CheckpointRequest request, SiteId site) override;
  std::vector<int64_t> kinds_of_ranks(const RanksOfRun& run) override;
  Neighbourhoods neighbourhoods_of_ranks(const RanksOfRun& run) override;
  /// What fully_shard makes of a module has no no_sync, by which Lightning accumulates.
  bool accumulates_without_exchange() const override { return false; }
  bool has_gradient_sync_switch() const override { return true; }

 private:
  ShardLayout layout_of(const std::vector<size_t>& parameters) const;
  bool reshards(const Unit& unit) const;

  void check_tensors(const UpdateOptions& options) const override;
  Program update(Rank& rank, const OptimizerPlan& optimizer, const StepTensors& step) override;
  std::vector<PartOfTensor> parts_of_step(const OptimizerPlan& optimizer);
  /// The optimizer has the shards, and what has not been reduced belongs to none of them.
  bool zeroes_whole_gradients() const override { return false; }

  // Forward and backward.
  Program unshard(Rank& rank, Unit& unit, size_t layer) override;
  void reshard_after_forward(Rank& rank, Unit& unit) override;
  Program prefetch_backward(Rank& rank, Unit& unit) override;
  void find_ends(const std::vector<BackwardPass>& passes) override;
  Program end_units_behind(Rank& rank, size_t layer, Ticket done, bool synchronise) override;
  Program end_backward(Rank& rank, Unit& unit, Ticket done, bool synchronise) override;
  Program finish_backward(Rank& rank, bool synchronise) override;

  // Checkpoints (fsdp2_checkpoint.cpp).
  Program gather_tensors(Rank& rank, size_t parameter, int tensors, HostCopy* host);
  void copy_pieces(Rank& rank, const CheckpointRequest& request, HostCopy& host);

  GradientDivision division(const Rank& rank) const;
  bool is_tensor_parallel() const { return options_.tensor_ranks > 1; }

  FullyShard2Options options_;
  TensorMesh mesh_{};  ///< where layers are cut
  bool is_set_up_ = false;
  GroupId pair_group_ = world_group;  ///< of `reshard_to` ranks
  Unit* reducing_ = nullptr;          ///< whose reduce_scatter is under way
};

/// ModelParallelStrategy, which has no other name.
StrategyEntry model_parallel();

}  // namespace lockstep
