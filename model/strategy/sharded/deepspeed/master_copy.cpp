#include "model/strategy/sharded/deepspeed/master_copy.hpp"

#include <cmath>
#include <utility>

#include "model/strategy/exchange/coalesced.hpp"
#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_sites.hpp"

namespace lockstep {

MasterCopy::MasterCopy(Replica& replica) : replica_(&replica) {
  for (size_t index = 0; index < replica.parameters().size(); ++index) {
    if (replica.parameters()[index].trainable) {
      parameters_.push_back(index);
    }
  }
}

// Engine._configure_fp16_optimizer: FusedAdam alone is given one flat tensor.
bool MasterCopy::is_fused() const {
  return class_name_of(replica_->plan().optimizers.front()) == "FusedAdam";
}

std::vector<Slice> MasterCopy::values() const {
  std::vector<Slice> all;
  for (const OptimizedTensor& tensor : tensors_) {
    all.push_back(tensor.value);
  }
  return all;
}

void MasterCopy::allocate(Rank& rank) {
  for (const size_t index : parameters_) {
    const Slice& narrow = replica_->parameters()[index].tensor.value;
    OptimizedTensor& added = tensors_.emplace_back();
    added.value = rank.allocate(Purpose::parameter, DType::fp32, narrow.elements);
    if (!is_fused()) {
      added.shape = replica_->parameters()[index].tensor.shape;
    }
    if (replica_->writes_values()) {
      constexpr uint64_t variant = 0;  // rank 0's, which all ranks have been sent
      const Values first = replica_->state().initial_value(index, variant);
      Values wide(DType::fp32, narrow.elements);
      for (int64_t i = 0; i < narrow.elements; ++i) {
        wide.set(i, first.number(i));
      }
      rank.write(added.value, wide);
    }
  }
}

void MasterCopy::forget_optimizer(Rank& rank) {
  for (OptimizedTensor& tensor : tensors_) {
    for (const Slice& state : std::exchange(tensor.state, {})) {
      rank.release(state);
    }
    tensor.steps = 0;
    tensor.numbers = {};
  }
  has_state_ = false;
}

std::vector<HeldParameter> MasterCopy::held_parameters() const {
  std::vector<HeldParameter> held;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    held.push_back({parameters_[i], 0, tensors_[i].value});
  }
  return held;
}

Bytes MasterCopy::bytes() const {
  const OptimizerPlan& optimizer = replica_->plan().optimizers.front();
  int64_t elements = 0;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Shape& shape = *replica_->parameters()[parameters_[i]].tensor.shape;
    elements += tensors_[i].value.elements + state_elements(optimizer, shape);
  }
  return Bytes(size_of(DType::fp32)) * elements;
}

// CheckOverflow.has_overflow asks each rank alone: reduced gradients are the same on all of them.
Task<bool> MasterCopy::is_finite(Rank& rank, SiteId site) {
  std::vector<Slice> gradients;
  for (const size_t index : parameters_) {
    const Slice& gradient = replica_->parameters()[index].tensor.gradient;
    if (gradient.buffer != no_buffer) {
      gradients.push_back(gradient);
    }
  }
  if (gradients.empty()) {
    co_return true;
  }
  const Slice squares = rank.allocate(Purpose::metric, DType::fp32, 1);
  KernelCall measure;
  measure.kernel = Kernel::squared_norm;
  measure.reads = gradients;
  measure.writes = {&squares, 1};
  measure.memory_traffic = total_bytes(gradients);
  co_await rank.settle(rank.compute(measure, {compute_stream, {}, site}));
  const Values found = rank.read(squares);
  rank.release(squares);
  co_return found.empty() || std::isfinite(found.number(0));
}

// A parameter that has no gradient gets zeros, and is updated by them.
void MasterCopy::widen(Rank& rank, const std::vector<Slice>& wide, SiteId site) {
  std::vector<Slice> from;
  std::vector<Slice> to;
  std::vector<Slice> none;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Slice& gradient = replica_->parameters()[parameters_[i]].tensor.gradient;
    if (gradient.buffer == no_buffer) {
      none.push_back(wide[i]);
    } else {
      from.push_back(gradient);
      to.push_back(wide[i]);
    }
  }
  if (!from.empty()) {
    elementwise(rank, Kernel::cast, from, to, 0, {compute_stream, {}, site});
  }
  if (!none.empty()) {
    elementwise(rank, Kernel::fill, {}, none, 0, {compute_stream, {}, site});
  }
}

void MasterCopy::step_by(Rank& rank, const Step& step, const std::vector<Slice>& gradients) {
  std::vector<OptimizedTensor*> tensors;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    tensors_[i].gradient = gradients[i];
    tensors.push_back(&tensors_[i]);
  }
  const TrainingPlan& plan = replica_->plan();
  lockstep::optimizer_step(rank, scheduled(plan.optimizers[step.options.optimizer], step.options),
                           kernels_of(plan), tensors, {compute_stream, {}, step.site});
  for (OptimizedTensor& tensor : tensors_) {
    tensor.gradient = Slice{};
  }
}

// initialize_optimizer_states: the engine makes the optimizer's state by a step with zeros for
// gradients. It counts: Adam corrects its first real moments as those of a second step, and weight
// decay acts. It is taken here with the rate of the first step.
void MasterCopy::make_state(Rank& rank, const Step& step) {
  if (tensors_.empty() || std::exchange(has_state_, true)) {
    return;
  }
  std::vector<Slice> zeros;
  for (const Slice& value : values()) {
    zeros.push_back(rank.allocate(Purpose::gradient, DType::fp32, value.elements));
  }
  elementwise(rank, Kernel::fill, {}, zeros, 0, {compute_stream, {}, step.site});
  step_by(rank, step, zeros);
  for (const Slice& each : zeros) {
    rank.release(each);
  }
}

void MasterCopy::update(Rank& rank, const Step& step) {
  if (tensors_.empty()) {
    return;
  }
  // 1. Gradients in full precision. The fused optimizer flattens what it has converted, and keeps
  // no gradients in 16 bits behind it; the other keeps them until the step has ended.
  const Slice flat = rank.allocate(Purpose::gradient, DType::fp32, total_elements(values()));
  const std::vector<Slice> gradients = parts_of(flat, values());
  if (is_fused()) {
    const Slice converted = rank.allocate(Purpose::gradient, DType::fp32, flat.elements);
    const std::vector<Slice> parts = parts_of(converted, values());
    widen(rank, parts, step.site);
    copy_each(rank, parts, gradients, {compute_stream, {}, step.site});
    rank.release(converted);
    drop_gradients(rank);
  } else {
    widen(rank, gradients, step.site);
  }
  // 2. They are divided by the loss scale and clipped by their norm, which every rank takes alone.
  if (step.loss_scale != 1) {
    elementwise(rank, Kernel::scale, {}, gradients, 1 / step.loss_scale,
                {compute_stream, {}, step.site});
  }
  clip_gradients(rank, step.options.clipping, gradients, DeviceId{0});
  // 3. The update, whose result is rounded to the model's type.
  step_by(rank, step, gradients);
  rank.release(flat);
  std::vector<Slice> narrow;
  for (const size_t index : parameters_) {
    narrow.push_back(replica_->parameters()[index].tensor.value);
  }
  elementwise(rank, Kernel::cast, values(), narrow, 0, {compute_stream, {}, step.site});
  drop_gradients(rank);
}

void MasterCopy::drop_gradients(Rank& rank) {
  for (const size_t index : parameters_) {
    replica_->forget_gradient(rank, replica_->parameters()[index]);
  }
}

}  // namespace lockstep
