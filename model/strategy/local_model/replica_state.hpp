#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "model/program/rank.hpp"
#include "model/strategy/local_model/model_division.hpp"
#include "model/strategy/local_model/optimizer.hpp"
#include "model/strategy/local_model/replica_layout.hpp"
#include "model/strategy/plan.hpp"

namespace lockstep {

/// A parameter tensor of a replica.
struct ReplicaParameter {
  ParameterPlace place;
  OptimizedTensor tensor;  ///< value, gradient (no_buffer while it is None), optimizer state
  bool trainable = true;
  bool gradient_is_view = false;  ///< the gradient's memory belongs to a DDP bucket
};

/// A state of a replica that is no parameter: running statistics, counters.
struct ReplicaBuffer {
  size_t layer = 0;
  Slice value;
};

/// What a replica has on its device from one step to the next: parameters with their gradients and
/// optimizer state, and buffers, in definition order, and the last loss.
class ReplicaState {
 public:
  ReplicaState(const TrainingPlan& plan, DeviceId device);

  /// A stage of a pipeline: only layers for which `layers` says so have parameters and buffers
  /// here, a weight that such a layer is tied to among them. The others never get memory. Before
  /// any allocation.
  void hold_only(const std::vector<bool>& layers);
  /// Whether it has this one of parameters().
  bool holds(size_t parameter) const {
    return held_parameters_.empty() || held_parameters_[parameter];
  }
  /// How many layers it holds.
  size_t held_layers() const;

  /// Its layers, experts or positions are parts: before any allocation.
  void share_layers(const TensorRanks& ranks);
  void share_experts(const ExpertRanks& ranks) { division_.experts = ranks; }
  void share_positions(const TensorRanks& ranks);
  const ModelDivision& division() const { return division_; }

  /// Allocates parameters and buffers; with numerics also gives them their first values, which are
  /// drawn from the plan's seed and `variant` (ranks that are seeded differently pass their rank).
  /// Does nothing where it has its memory already.
  void allocate(Rank& rank, uint64_t variant = 0);
  /// The same with memory of the caller for the parameters, which it frees after release().
  void allocate_in(Rank& rank, const std::vector<Slice>& parameters, uint64_t variant = 0);
  /// Buffers and the loss alone, for a strategy that sets ReplicaParameter::tensor.value while it
  /// is used.
  void allocate_without_parameters(Rank& rank);
  /// The first value of a parameter, an index into parameters(): what allocate() writes.
  Values initial_value(size_t parameter, uint64_t variant) const;
  /// Takes memory for parameters and buffers that the caller frees after it.
  void adopt(Rank& rank, const std::vector<Slice>& parameters, const std::vector<Slice>& buffers);
  /// Frees all that it owns. It may be allocated again.
  void release(Rank& rank);
  bool is_allocated() const { return is_allocated_; }

  const TrainingPlan& plan() const { return *plan_; }
  const Network& network() const { return *plan_->network; }
  bool writes_values() const { return plan_->numerics && !plan_->valueless; }
  DeviceId device() const { return device_; }
  StreamId compute() const { return stream(queue::compute, device_); }
  /// Without layers where every tensor is an operand (numerics).
  const NetworkMemory& memory() const { return layout_->memory; }
  std::vector<ReplicaParameter>& parameters() { return parameters_; }
  const std::vector<ReplicaParameter>& parameters() const { return parameters_; }
  /// Indices into parameters() of all that the layer reads, those of a tied layer among them.
  const std::vector<size_t>& parameters_of(size_t layer) const {
    return layout_->parameters_of[layer];
  }
  /// Indices into parameters() of the trainable ones of a layer, in definition order.
  const std::vector<size_t>& trainable_of(size_t layer) const {
    return layout_->trainable_of[layer];
  }
  const std::vector<ReplicaBuffer>& buffers() const { return buffers_; }
  /// Indices into buffers().
  const std::vector<size_t>& buffers_of(size_t layer) const { return layout_->buffers_of[layer]; }
  std::vector<Slice> parameter_values() const;
  std::vector<Slice> buffer_values() const;
  /// The loss of the last forward: one element, fp32.
  const Slice& loss() const { return loss_; }

  /// Whether the optimizer, an index into TrainingPlan::optimizers, works on it.
  bool is_held_by(size_t optimizer, const ReplicaParameter& parameter) const {
    return plan_->optimizers.at(optimizer).holds(parameter.place.layer);
  }
  /// Gradients of the trainable parameters; no_buffer if None.
  std::vector<Slice> gradients() const;
  /// Makes the gradient exist, if it is None.
  void ensure_gradient(Rank& rank, ReplicaParameter& parameter) const;
  /// Makes every gradient exist; those that were None are 0.
  void fill_missing_gradients(Rank& rank);
  /// Makes it None.
  void forget_gradient(Rank& rank, ReplicaParameter& parameter) const;
  void fill_with_zeros(Rank& rank, const Slice& data) const;
  /// A new optimizer takes over: frees the state of the old one.
  void forget_optimizer(Rank& rank);

 private:
  void allocate_buffers(Rank& rank);
  bool holds_layer(size_t layer) const { return held_layers_.empty() || held_layers_[layer]; }

  const TrainingPlan* plan_;
  DeviceId device_;
  std::shared_ptr<const ReplicaLayout> layout_;
  std::vector<ReplicaParameter> parameters_;
  std::vector<ReplicaBuffer> buffers_;
  std::vector<bool> held_layers_;      ///< empty: all
  std::vector<bool> held_parameters_;  ///< the same, by parameter
  ModelDivision division_;
  Slice loss_;
  bool is_allocated_ = false;
  bool owns_parameters_ = false;
  bool owns_buffers_ = false;
};

}  // namespace lockstep
