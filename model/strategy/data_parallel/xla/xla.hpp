#pragma once

#include <vector>

#include "model/strategy/data_parallel/replicated.hpp"
#include "model/strategy/data_parallel/xla/graph_cache.hpp"
#include "model/strategy/registry.hpp"

namespace lockstep {

struct XlaOptions {
  bool is_distributed = true;  ///< false: one device, as SingleDeviceXLAStrategy has it
  /// Rank 0's parameters and buffers become everybody's before a stage begins.
  bool sync_module_states = true;
  bool saves_on_all_ranks = false;  ///< xm.save, in which all ranks meet
  bool has_root = true;             ///< of a broadcast; else it is always rank 0
};

/// One process for each device of XLA, without a wrapper of the module: gradients stay on their
/// device until the optimizer steps, then all of them are summed by one call and divided
/// (lightning/pytorch/strategies/xla.py, plugins/precision/xla.py; torch_xla/core/xla_model.py,
/// reduce_gradients).
class XlaDataParallel final : public ReplicatedDataParallel {
 public:
  XlaDataParallel(const TrainingPlan& plan, const XlaOptions& options);

  std::string_view name() const override { return "xla"; }
  Program setup(Rank& rank, Stage stage) override;
  Program forward(Rank& rank, const Batch& batch, const StepOptions& options) override;
  Program backward(Rank& rank, const StepOptions& options) override;
  Program complete_gradients(Rank& rank, const UpdateOptions& options) override;
  Program optimizer_step(Rank& rank, const UpdateOptions& options) override;
  Program zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) override;
  Program teardown(Rank& rank) override;
  Task<WrittenBytes> save_checkpoint(Rank& rank, CheckpointRequest request, SiteId site) override;

  Program reduce(Rank& rank, Slice data, Reduction reduction, SiteId site) override;
  Program barrier(Rank& rank, SiteId site) override;
  Program broadcast(Rank& rank, Slice data, int32_t root, SiteId site) override;
  Program all_gather(Rank& rank, Slice part, Slice whole, SiteId site) override;

  std::vector<int64_t> kinds_of_ranks(const RanksOfRun& run) override;
  std::vector<CompiledGraph> compiled_graphs() const override { return graphs_.graphs(); }
  std::vector<KnownDifference> known_differences() override;
  bool has_process_group() const override { return options_.is_distributed; }
  /// Nothing is sent before the optimizer steps, so that there is nothing to leave out.
  std::string no_sync_refusal() const override;

 protected:
  GradientExchange* exchange() override { return nullptr; }

 private:
  bool is_alone(const Rank& rank) const;
  Program send_module_state(Rank& rank);
  Program broadcast_by_sum(Rank& rank, std::vector<Slice> tensors, int32_t root, SiteId site);
  void begin_gradients(Rank& rank);
  std::vector<Slice> gradients_to_reduce(size_t optimizer);
  void release_flat(Rank& rank, size_t optimizer);

  XlaOptions options_;
  /// By optimizer, the memory of its gradients from the first backward of a window on.
  std::vector<Slice> flat_;
  GraphCache graphs_;
  bool clips_own_gradients_ = false;  ///< of the next step, which then clips no more
  bool has_clipped_own_ = false;
};

/// "xla", XLAStrategy, and "single_xla", SingleDeviceXLAStrategy.
StrategyEntry xla();
StrategyEntry single_xla();

}  // namespace lockstep
