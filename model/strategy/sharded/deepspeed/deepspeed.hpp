#pragma once

#include <optional>
#include <vector>

#include "model/strategy/data_parallel/replicated.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_options.hpp"
#include "model/strategy/sharded/deepspeed/partition_reduction.hpp"

namespace lockstep {

inline constexpr const char* engine_sends_no_statistics =
    "DeepSpeed's engine averages gradients; nothing sends the running statistics of batch norm";

struct StrategyEntry;

/// What the engine's no_sync asserts at stages that divide gradients; empty at the others.
std::string no_sync_refusal_of(int64_t stage);

/// Types in which DeepSpeed runs a model: parameters, activations and gradients all in 16 bits
/// under fp16 and bf16, beside which the optimizer has its own in full precision.
TrainingPlan in_deepspeed_types(TrainingPlan plan);

/// By which the next loss is multiplied; raises where torch does.
double loss_scale_of(const LossScaler& scaler);
/// A step has been taken or skipped; raises where DeepSpeed gives up.
void note_step(LossScaler& scaler, bool overflowed);
/// For LS306: steps that were skipped, where there are any.
std::vector<KnownDifference> skipped_steps(const LossScaler& scaler);

/// The same in bf16, which has no scale.
KnownDifference skipped_without_scale(int64_t steps);

/// The ranks agree whether a gradient has overflowed; the host waits for it.
Program share_flag(Rank& rank, SiteId site);

/// What the engine saves of one rank.
struct EngineCheckpoint {
  Bytes model{};          ///< of rank 0, or at stage 3 of each rank
  Bytes partition{};      ///< of the optimizer
  bool is_parted = true;  ///< ZeRO: every rank writes a partition
  bool barrier_is_all_reduce = true;
  bool compares_tags = true;  ///< `checkpoint.tag_validation` is not Ignore
};
/// engine.py, save_checkpoint, but for the barrier at its end: all ranks compare the name, rank 0
/// writes the model, and where the optimizer is partitioned every rank its part. Returns the bytes
/// of this rank.
Task<Bytes> save_engine_checkpoint(Rank& rank, EngineCheckpoint saved, CheckpointRequest request,
                                   SiteId site);

/// ZeRO stages 1 and 2 of DeepSpeed (deepspeed/runtime/zero/stage_1_and_2.py): every rank holds all
/// parameters in one flat buffer, averages its gradients with the others', and updates its equal
/// part of the buffer, which the ranks then gather.
class DeepSpeedPartitioned final : public ReplicatedDataParallel {
 public:
  DeepSpeedPartitioned(const TrainingPlan& plan, const DeepSpeedOptions& options);

  std::string_view name() const override;
  Program setup(Rank& rank, Stage stage) override;
  Program optimizer_step(Rank& rank, const UpdateOptions& options) override;
  std::vector<HeldParameter> held_parameters() override;
  Task<WrittenBytes> save_checkpoint(Rank& rank, CheckpointRequest request, SiteId site) override;
  std::optional<GradientClipping> configured_clipping() const override { return options_.clipping; }
  bool accumulates_without_exchange() const override { return true; }
  std::string no_sync_refusal() const override;
  std::vector<KnownDifference> known_differences() override;

 protected:
  GradientExchange* exchange() override { return reduction_ ? &*reduction_ : nullptr; }
  StepOptions for_backward(const StepOptions& options) override;

 private:
  void allocate(Rank& rank);
  void allocate_for_offload(Rank& rank, const std::vector<int64_t>& sizes);
  Program send_states(Rank& rank);
  Program share_overflow_flag(Rank& rank);
  void require_gradients();
  /// Whether a step is skipped where gradients are not finite.
  bool checks_gradients() const;
  /// The step is taken or skipped.
  void note_step_of_all(bool overflowed);

  DeepSpeedOptions options_;
  Slice flat_;  ///< all trainable parameters, with padding
  std::optional<MasterPartition> partition_;
  std::optional<PartitionReduction> reduction_;
  LossScaler scaler_;
  int64_t skipped_ = 0;  ///< steps in bf16
};

/// "deepspeed", DeepSpeedStrategy: every stage.
StrategyEntry deepspeed();

}  // namespace lockstep
