#pragma once

#include <optional>
#include <span>
#include <vector>

#include "model/program/rank.hpp"
#include "model/strategy/optimizer.hpp"
#include "model/strategy/plan.hpp"
#include "model/strategy/update_options.hpp"

namespace lockstep {

/// One copy of the model on one device of one rank, and how its layers run there: what strategies
/// compose. All device work goes to the compute stream of the device, in program order.
class Replica {
 public:
  /// A parameter tensor, in definition order.
  struct Parameter {
    ParameterPlace place;
    OptimizedTensor tensor;  ///< value, gradient (no_buffer while it is None), optimizer state
    bool trainable = true;
    bool gradient_is_view = false;  ///< the gradient's memory belongs to a DDP bucket
  };
  /// A state that is no parameter: running statistics, counters.
  struct Buffer {
    size_t layer = 0;
    Slice value;
  };

  Replica(const TrainingPlan& plan, DeviceId device);

  /// Allocates parameters and buffers; with numerics also gives them their first values, which are
  /// drawn from the plan's seed and `variant` (ranks that are seeded differently pass their rank).
  /// Does nothing where the replica has its memory already.
  void allocate(Rank& rank, uint64_t variant = 0);
  /// Takes memory of the caller for parameters and buffers, in definition order. The caller frees
  /// it after release().
  void adopt(Rank& rank, const std::vector<Slice>& parameters, const std::vector<Slice>& buffers);
  /// Frees all that the replica owns. It may be allocated again.
  void release(Rank& rank);
  bool is_allocated() const { return is_allocated_; }

  /// Copies the batch to the device and runs all layers and the loss. Returns when the loss is
  /// there. What backward needs is kept when training.
  Ticket forward(Rank& rank, const Batch& batch, const StepOptions& options, After after = {});

  /// The backward of the last forward, in pieces so that a strategy decides when each gradient is
  /// exchanged: first the loss, then the layers that ran, last to first.
  Ticket backward_of_loss(Rank& rank, const StepOptions& options, After after = {});
  /// Like backward_of_loss, for a loss that the program computes from the output.
  Ticket backward_of_own_loss(Rank& rank, const StepOptions& options, After after);
  /// Layers of the last forward through which its backward goes, last first.
  std::vector<size_t> layers_last_to_first() const;
  /// Whether the parameter gets a gradient by the backward of the last forward, if its layer ran.
  bool wants_gradient(const Parameter& parameter) const;
  /// Fills (adds into) the gradients of the layer's parameters. The forward of a checkpointed
  /// segment runs again before the first backward of its layers.
  Ticket backward(Rank& rank, size_t layer);
  /// Frees what forward kept; called by the last backward, or to drop a forward.
  void forget_forward(Rank& rank);

  /// Clips the gradients of the optimizer's parameters and updates these.
  Ticket optimizer_step(Rank& rank, const UpdateOptions& options, SiteId site);
  /// A new optimizer takes over: frees the state of the old one.
  void forget_optimizer(Rank& rank);
  /// set_to_none makes the gradients of the optimizer's parameters None; else those that exist are
  /// filled with 0.
  void zero_gradients(Rank& rank, size_t optimizer, bool set_to_none);

  const TrainingPlan& plan() const { return *plan_; }
  const Network& network() const { return *plan_->network; }
  bool writes_values() const { return plan_->numerics && !plan_->valueless; }
  DeviceId device() const { return device_; }
  StreamId compute() const { return stream(queue::compute, device_); }
  std::vector<Parameter>& parameters() { return parameters_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  /// Indices into parameters() of the trainable ones of a layer, in definition order.
  const std::vector<size_t>& trainable_of(size_t layer) const { return trainable_of_[layer]; }
  const std::vector<Buffer>& buffers() const { return buffers_; }
  /// Parameters, buffers: their values in definition order.
  std::vector<Slice> parameter_values() const;
  std::vector<Slice> buffer_values() const;
  /// Gradients of the trainable parameters, in definition order; no_buffer if None.
  std::vector<Slice> gradients() const;
  /// Makes the gradient exist, if it is None.
  void ensure_gradient(Rank& rank, Parameter& parameter);
  /// Makes every gradient exist; those that were None are 0.
  void fill_missing_gradients(Rank& rank);
  /// Makes it None.
  void forget_gradient(Rank& rank, Parameter& parameter);
  /// The inputs and targets that the last forward moved to the device.
  Bytes batch_bytes() const { return input_.bytes() + target_.bytes(); }
  /// The loss of the last forward: one element, fp32.
  Slice loss() const { return loss_; }
  /// The output shape of one sample in the last forward.
  const Shape& output_shape() const;
  Slice output() const { return trace_.empty() ? Slice{} : trace_.back().output; }

 private:
  /// Buffers that the forward of one layer left.
  struct LayerRun {
    size_t layer = 0;
    Slice input;
    Slice output;
    Slice kept;                      ///< memory that the framework keeps for backward
    Slice recomputed;                ///< the same, of the forward that ran again
    std::optional<size_t> residual;  ///< of residual layers: index into residuals_
    /// In a training: the segment whose forward runs again before its backward.
    const CheckpointedSegment* segment = nullptr;
  };
  /// Which of a layer's forwards.
  struct Turn {
    bool training = true;
    bool again = false;    ///< the second one, of a checkpointed segment
    bool is_last = false;  ///< of that segment
  };
  struct Cost {
    int64_t work = 0;
    Bytes memory_traffic{};
  };
  /// A skip connection: what it remembers on the way forth, what comes back over it.
  struct Residual {
    Slice remembered;
    Slice aside;
    Slice gradient_of_sum;
    Slice gradient_of_shortcut;
    /// What is added to the other branch.
    const Slice& branch() const { return aside.buffer != no_buffer ? aside : remembered; }
  };

  void bring_batch(Rank& rank, const Batch& batch, const StepOptions& options, After after);
  bool runs(size_t layer, const StepOptions& options) const;
  void find_first_wanted_layer(const StepOptions& options);
  void run_layer(Rank& rank, size_t layer, bool training);
  std::optional<size_t> residual_of(size_t layer);
  void pass_residual(const LayerRun& run);
  void forward_of_run(Rank& rank, LayerRun& run, const Turn& turn);
  DType output_type_of(const LayerRun& run) const;
  void submit_forward(Rank& rank, const LayerRun& run, const Turn& turn, const Slice& output);
  Cost cost_of(const LayerRun& run, const Turn& turn) const;
  bool updates_buffers(const LayerRun& run, const Turn& turn) const;
  Slice keep(Rank& rank, Bytes of_sample);
  Cost backward_cost(size_t layer) const;
  std::span<LayerRun> runs_of(const CheckpointedSegment& segment);
  void forget_inside(Rank& rank, const CheckpointedSegment& segment);
  void recompute(Rank& rank, const CheckpointedSegment& segment);
  static void forget(Rank& rank, Slice& memory);
  Ticket backward_of_run(Rank& rank, LayerRun& run, std::vector<Slice> gradients);
  void turn_to_shortcut(Rank& rank, Residual& residual);
  Slice transient(Rank& rank, int64_t elements, DType dtype);
  void fill_with_zeros(Rank& rank, const Slice& data);
  bool is_held_by(size_t optimizer, const Parameter& parameter) const;
  bool wants_input_gradient(size_t layer) const { return layer > first_wanted_layer_; }

  const TrainingPlan* plan_;
  DeviceId device_;
  std::vector<Parameter> parameters_;
  std::vector<std::vector<size_t>> parameters_of_;  ///< by layer, all that its kernels read
  std::vector<std::vector<size_t>> trainable_of_;
  std::vector<std::vector<size_t>> buffers_of_;
  std::vector<Buffer> buffers_;
  Slice loss_;
  bool is_allocated_ = false;
  bool owns_values_ = false;  ///< the memory of parameters and buffers

  // Of the last forward:
  int64_t samples_ = 0;
  size_t last_module_ = 0;
  size_t first_wanted_layer_ = 0;         ///< that has a parameter which gets a gradient
  std::optional<size_t> only_optimizer_;  ///< whose parameters alone get one
  Slice input_;
  Slice target_;
  std::vector<Slice> transient_;  ///< freed with the forward
  std::vector<LayerRun> trace_;
  std::vector<Residual> residuals_;
  std::vector<size_t> open_residuals_;
  const CheckpointedSegment* recomputed_ = nullptr;  ///< whose backward is under way
  Slice current_;                                    ///< activation that the next layer reads
  Slice gradient_;                                   ///< gradient that the next backward reads
};

/// The values that sample `index` of the data set has: small whole numbers, or class indices.
/// A pure function of seed and index, so that every world and every sharding sees the same data.
/// With modules, of the one that runs first, and of the one that runs last.
Values batch_inputs(const TrainingPlan& plan, const Batch& batch, size_t module = 0);
Values batch_targets(const TrainingPlan& plan, const Batch& batch, size_t module = 0);

}  // namespace lockstep
