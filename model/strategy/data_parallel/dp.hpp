#pragma once

#include <vector>

#include "model/strategy/data_parallel/gathered_loss.hpp"
#include "model/strategy/data_parallel/one_process.hpp"
#include "model/strategy/data_parallel/uneven_chunks.hpp"
#include "model/strategy/local_model/replica.hpp"
#include "model/strategy/registry.hpp"

namespace lockstep {

/// torch.nn.DataParallel: one process drives K devices; the model lives on device 0 and is copied
/// to the others at every forward (data_parallel.py, replicate.py, comm.py).
class DataParallel final : public OneProcessStrategy {
 public:
  explicit DataParallel(const TrainingPlan& plan);

  std::string_view name() const override { return "dp"; }
  Program setup(Rank& rank, Stage stage) override;
  Program forward(Rank& rank, const Batch& batch, const StepOptions& options) override;
  Program backward(Rank& rank, const StepOptions& options) override;
  Program optimizer_step(Rank& rank, const UpdateOptions& options) override;
  Program zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) override;
  Slice loss() const override;
  Ticket loss_ready() const override { return loss_ready_; }
  Replica& replica() override { return copies_.front().replica; }
  std::vector<Transfer> transfers_per_step() const override { return transfers_.all(); }
  std::vector<KnownDifference> known_differences() override;
  bool steps_on_copies() const override { return copies_.size() > 1; }
  std::vector<Batch> parts(const Batch& batch) const override;
  Replica& copy(size_t part) override { return copies_[part].replica; }
  Slice loss_of(size_t part) const override;

 private:
  /// The model on one device, and where its step stands.
  struct Copy {
    Replica replica;
    std::vector<Slice> chunks;  ///< memory of its parameters and buffers; none on device 0
    Ticket arrived;             ///< its parameters and buffers are those of device 0
    Ticket computed;            ///< its loss, then its gradients
  };
  using Views = std::vector<std::vector<Slice>>;  ///< by device, then tensor

  void replicate(Rank& rank);
  Views send_coalesced(Rank& rank, const std::vector<Slice>& tensors, std::string_view label);
  void gather_losses(Rank& rank);
  bool gathers_outputs() const { return plan_->loss_of_whole_batch && copies_.size() > 1; }
  std::vector<GatheredLoss::Part> outputs();
  void forward_to_output(Rank& rank, Copy& copy, const Batch& part, const StepOptions& options);
  void backward_from_outputs(Rank& rank, const StepOptions& options);
  Ticket scatter_output_gradient(Rank& rank, const Copy& to);
  void reduce_gradients(Rank& rank);
  void add_to_root(Rank& rank, Copy& from, const std::vector<std::vector<size_t>>& chunks);
  void throw_away(Rank& rank, Copy& copy);
  size_t used_devices() const { return parts_.size(); }

  const TrainingPlan* plan_;
  std::vector<Copy> copies_;     ///< one a device; all but the first live for a step
  std::vector<Batch> parts_;     ///< of the batch, one a used device
  Slice gathered_;               ///< one loss a used device, on device 0
  Slice loss_;                   ///< their mean
  GatheredLoss of_whole_batch_;  ///< in place of these, where outputs are gathered
  UnevenChunks uneven_;
  Ticket loss_ready_;
  Transfers transfers_;
};

/// The lengths of the chunks that torch.chunk makes of `elements` for `devices`: ceil(n / K) each
/// and the rest; fewer than K where that suffices.
std::vector<int64_t> chunk_lengths(int64_t elements, int64_t devices);

/// Bytes at which a chunk of coalesced tensors closes (`buffer_size` of torch's comm.py).
inline constexpr Bytes coalesced_chunk{10 * 1024 * 1024};

/// "dp", DataParallelStrategy.
StrategyEntry data_parallel();

}  // namespace lockstep
