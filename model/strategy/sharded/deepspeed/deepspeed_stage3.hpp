#pragma once

#include <optional>
#include <vector>

#include "model/strategy/data_parallel/distributed.hpp"
#include "model/strategy/sharded/deepspeed/parameter_fetcher.hpp"
#include "model/strategy/sharded/deepspeed/shard_reduction.hpp"

namespace lockstep {

/// ZeRO stage 3 of DeepSpeed (deepspeed/runtime/zero/stage3.py): a rank stores its part of every
/// parameter. Modules gather what they compute with, gradients are scattered in buckets, and every
/// rank updates its parts.
class DeepSpeedSharded final : public DistributedStrategy {
 public:
  DeepSpeedSharded(const TrainingPlan& plan, const DeepSpeedOptions& options);

  std::string_view name() const override;
  Program setup(Rank& rank, Stage stage) override;
  Program forward(Rank& rank, const Batch& batch, const StepOptions& options) override;
  Program backward(Rank& rank, const StepOptions& options) override;
  Program optimizer_step(Rank& rank, const UpdateOptions& options) override;
  Program zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) override;

  std::vector<Transfer> transfers_per_step() const override { return transfers_.all(); }
  Slice loss() const override { return replica_.loss(); }
  Ticket loss_ready() const override { return loss_ready_; }
  Replica& replica() override { return replica_; }
  std::vector<HeldParameter> held_parameters() override;
  Task<WrittenBytes> save_checkpoint(Rank& rank, CheckpointRequest request, SiteId site) override;
  std::optional<GradientClipping> configured_clipping() const override { return options_.clipping; }
  bool accumulates_without_exchange() const override { return true; }
  std::string no_sync_refusal() const override;
  std::vector<KnownDifference> known_differences() override;
  std::vector<int64_t> kinds_of_ranks(const RanksOfRun& run) override;
  Neighbourhoods neighbourhoods_of_ranks(const RanksOfRun& run) override;

 private:
  ShardLayout layout_of_parts(const std::vector<size_t>& parameters, int32_t ranks) const;
  Program allocate(Rank& rank);
  void require_optimizer(const char* use) const;
  void enter(Rank& rank, size_t layer);
  void run_again(Rank& rank, size_t layer);
  void leave(Rank& rank, size_t layer, bool backward);
  void update_parameters(Rank& rank, const MasterPartition::Step& step);

  DeepSpeedOptions options_;
  TrainingPlan computing_plan_;
  Replica replica_;
  std::vector<ModuleRange> modules_;
  std::vector<std::vector<size_t>> modules_of_;  ///< by layer: those that it is in, in order
  std::vector<bool> entered_;                    ///< by module, in the pass under way
  std::vector<bool> has_run_again_;              ///< in a backward, at any time
  std::optional<ParameterPartitions> partitions_;
  std::optional<ParameterFetcher> fetcher_;
  std::optional<MasterPartition> master_;
  std::optional<ShardReduction> reduction_;
  LossScaler scaler_;
  Ticket loss_ready_{};
  Transfers transfers_;
};

}  // namespace lockstep
