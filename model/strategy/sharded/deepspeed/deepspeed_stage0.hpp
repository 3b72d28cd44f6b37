#pragma once

#include <map>
#include <optional>

#include "model/strategy/data_parallel/replicated.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_options.hpp"
#include "model/strategy/sharded/deepspeed/master_copy.hpp"

namespace lockstep {

/// All gradients in flat all_reduces once the backward has ended (deepspeed/runtime/engine.py,
/// buffered_allreduce_fallback).
class FlatReduction final : public GradientExchange {
 public:
  /// `communicated`: the type in which gradients travel; none: their own.
  FlatReduction(Replica& replica, std::optional<DType> communicated, EngineDivision division)
      : replica_(&replica), communicated_(communicated), division_(division) {}

  void begin(Rank&, bool synchronise) override { synchronises_ = synchronise; }
  void gradients_ready(Rank&, size_t, Ticket) override {}
  Program finish(Rank& rank) override;
  Program settle(Rank& rank) override;
  std::vector<Bytes> take_exchanged_bytes() override { return std::exchange(exchanged_bytes_, {}); }
  /// Backwards in which a parameter got zeros for a gradient.
  const std::map<size_t, int64_t>& without_gradient() const { return without_gradient_; }

 private:
  void reduce(Rank& rank, const std::vector<Slice>& gradients);

  Replica* replica_;
  std::optional<DType> communicated_;
  EngineDivision division_;
  bool synchronises_ = true;
  Ticket reduced_{};
  std::map<size_t, int64_t> without_gradient_;
  std::vector<Bytes> exchanged_bytes_;
};

/// DeepSpeed without ZeRO: every rank holds and updates everything, in 16 bits beside a copy in
/// full precision. An engine that only evaluates is one, but for stage 3, and has no copy.
class DeepSpeedReplicated final : public ReplicatedDataParallel {
 public:
  DeepSpeedReplicated(const TrainingPlan& plan, const DeepSpeedOptions& options);

  std::string_view name() const override { return "deepspeed"; }
  Program setup(Rank& rank, Stage stage) override;
  Program optimizer_step(Rank& rank, const UpdateOptions& options) override;
  std::vector<HeldParameter> held_parameters() override;
  Task<WrittenBytes> save_checkpoint(Rank& rank, CheckpointRequest request, SiteId site) override;
  std::optional<GradientClipping> configured_clipping() const override { return options_.clipping; }
  std::vector<KnownDifference> known_differences() override;
  std::vector<int64_t> kinds_of_ranks(const RanksOfRun& run) override {
    return std::vector<int64_t>(static_cast<size_t>(run.all), 0);
  }

 protected:
  GradientExchange* exchange() override { return reduction_ ? &*reduction_ : nullptr; }
  StepOptions for_backward(const StepOptions& options) override;

 private:
  bool has_copy() const;
  bool is_scaled() const { return computing_plan().parameter_dtype == DType::fp16; }
  bool scales_loss() const;
  Program step_of_copy(Rank& rank, const UpdateOptions& options);
  void add_of_copy(std::vector<KnownDifference>& known) const;

  DeepSpeedOptions options_;
  std::optional<FlatReduction> reduction_;
  std::optional<MasterCopy> copy_;
  LossScaler scaler_;
  int64_t skipped_ = 0;  ///< steps in bf16
  int64_t unlike_ = 0;   ///< steps whose gradients were divided by a scale that had just doubled
};

}  // namespace lockstep
