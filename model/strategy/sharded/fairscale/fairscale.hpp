#pragma once

#include <optional>
#include <vector>

#include "model/strategy/data_parallel/replicated.hpp"
#include "model/strategy/layout/parameter_owners.hpp"
#include "model/strategy/sharded/fairscale/owner_reduction.hpp"

namespace lockstep {

struct StrategyEntry;

/// Elements; FairScale's own default, which Lightning keeps between nodes.
inline constexpr int64_t reduce_buffer_size_of_fairscale = int64_t{1} << 23;

/// Arguments of FairScale's ShardedDataParallel and OSS, as Lightning 1.x gives them.
struct ShardedDataParallelOptions {
  /// Elements; none: 0 on one node and 2^23 on several, as Lightning chooses.
  std::optional<int64_t> reduce_buffer_size;
  bool broadcast_buffers = true;
  bool sync_models_at_startup = true;
  bool reduce_fp16 = false;
  /// Lightning from 1.5 on accumulates under no_sync (block_backward_sync).
  bool accumulates_under_no_sync = true;
  /// OSS.clip_grad_norm, which Lightning calls under `precision: 16`: the norm of all ranks'
  /// gradients counts. Else every rank clips by the norm of what it has.
  bool clips_by_whole_norm = false;
  /// Updated parameters travel in half precision.
  enum class Broadcast : uint8_t { as_stored, half, half_between_nodes };
  Broadcast broadcast = Broadcast::as_stored;
};

/// FairScale's optimizer state sharding under its ShardedDataParallel (fairscale/optim/oss.py,
/// nn/data_parallel/sharded_ddp.py): every parameter belongs to one rank, which alone has its
/// gradient and its optimizer state, updates it, and sends it to the others.
class ShardedDataParallel final : public ReplicatedDataParallel {
 public:
  ShardedDataParallel(const TrainingPlan& plan, const ShardedDataParallelOptions& options);

  std::string_view name() const override { return "ddp_sharded"; }
  Program setup(Rank& rank, Stage stage) override;
  Program optimizer_step(Rank& rank, const UpdateOptions& options) override;
  Program teardown(Rank& rank) override;
  std::vector<KnownDifference> known_differences() override;
  bool accumulates_without_exchange() const override { return options_.accumulates_under_no_sync; }
  std::vector<int64_t> kinds_of_ranks(const RanksOfRun& run) override;
  Task<WrittenBytes> save_checkpoint(Rank& rank, CheckpointRequest request, SiteId site) override;

  const std::vector<int32_t>& owners() const { return owners_; }

 protected:
  GradientExchange* exchange() override { return reduction_ ? &*reduction_ : nullptr; }
  Program before_forward(Rank& rank, const StepOptions& options) override;

 private:
  std::vector<OwnedSize> owned_sizes();
  void allocate(Rank& rank);
  Program send_states(Rank& rank);
  Program send_parameters(Rank& rank);
  Bytes state_bytes_of(int32_t owner) const;

  ShardedDataParallelOptions options_;
  std::vector<int32_t> owners_;  ///< by parameter
  std::vector<Slice> flat_;      ///< by owner: its trainable parameters, one behind the other
  std::optional<OwnerReduction> reduction_;
  bool clips_by_own_norm_ = false;    ///< a step has done so
  bool sends_old_gradients_ = false;  ///< of a fit that has ended
  bool reduces_twice_ = false;        ///< the same
};

/// "ddp_sharded", DDPShardedStrategy.
StrategyEntry sharded_data_parallel();
/// "ddp_sharded_spawn", DDPSpawnShardedStrategy, which leaves the size of buffers to FairScale.
StrategyEntry spawned_sharded_data_parallel();

}  // namespace lockstep
