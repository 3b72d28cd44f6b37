// The state of a replica.
#include "model/strategy/local_model/replica.hpp"

#include <algorithm>

#include "model/core/random.hpp"
#include "model/network/arithmetic/initial_values.hpp"
#include "model/network/mixture.hpp"
#include "model/strategy/local_model/replica_sites.hpp"

namespace lockstep {

// State

Replica::Replica(const TrainingPlan& plan, DeviceId device)
    : plan_(&plan), device_(device), layout_(layout_of(plan)) {
  routes_tokens_ = plan.numerics && !plan.valueless && has_mixtures(network());
  const std::vector<ParameterPlace> places = network().parameters();
  parameters_.reserve(places.size());
  for (const ParameterPlace place : places) {
    parameters_.push_back({place, {}, network().parameter(place).trainable, false});
    parameters_.back().tensor.shape = &network().parameter(place).shape;
  }
  for (size_t layer = 0; layer < network().layers.size(); ++layer) {
    for (const BufferTensor& tensor : network().layers[layer].buffers) {
      // Module.to(dtype) converts what is floating, buffers as well as parameters.
      const DType made = plan.buffer_dtype.value_or(plan.parameter_dtype);
      const bool converted = is_floating(tensor.dtype) && made != DType::fp32;
      const DType dtype = converted ? made : tensor.dtype;
      buffers_.push_back({layer, Slice::of_size(dtype, tensor.elements())});
    }
  }
}

void Replica::allocate(Rank& rank, uint64_t variant) {
  if (std::exchange(is_allocated_, true)) {
    return;
  }
  owns_parameters_ = true;
  for (size_t index = 0; index < parameters_.size(); ++index) {
    if (!holds(index)) {
      continue;
    }
    const ParameterPlace place = parameters_[index].place;
    Slice& value = parameters_[index].tensor.value;
    value = rank.allocate(Purpose::parameter, plan_->parameter_dtype,
                          network().parameter(place).elements(), device_);
    if (writes_values()) {
      rank.write(value, initial_value(index, variant));
    }
  }
  allocate_buffers(rank);
}

void Replica::allocate_in(Rank& rank, const std::vector<Slice>& parameters, uint64_t variant) {
  if (std::exchange(is_allocated_, true)) {
    return;
  }
  ensure(parameters.size() == parameters_.size(), "memory for every parameter");
  owns_parameters_ = false;
  for (size_t index = 0; index < parameters.size(); ++index) {
    parameters_[index].tensor.value = parameters[index];
    if (writes_values() && holds(index)) {
      rank.write(parameters[index], initial_value(index, variant));
    }
  }
  allocate_buffers(rank);
}

void Replica::allocate_without_parameters(Rank& rank) {
  if (!std::exchange(is_allocated_, true)) {
    allocate_buffers(rank);
  }
}

Values Replica::initial_value(size_t parameter, uint64_t variant) const {
  const Initialisation how =
      plan_->integer_values ? Initialisation::small_integers : Initialisation::uniform_fan_in;
  const uint64_t key = random_key(random_key(plan_->seed, variant), parameter);
  const bool is_whole = plan_->whole_network == nullptr;
  const ParameterPlace place =
      is_whole ? parameters_[parameter].place : plan_->whole_network->parameters()[parameter];
  const Network& drawn = is_whole ? network() : *plan_->whole_network;
  const Values whole =
      initial_parameter(drawn.layers[place.layer], place.tensor, plan_->parameter_dtype, how, key);
  const std::optional<TensorCut>& cut = network().parameter(parameters_[parameter].place).cut;
  if (!cut) {
    return whole;
  }
  Values part(whole.dtype(), elements_of(cut->part_shape()));
  for (const TensorRun& run : cut->runs_of(part_index(*cut))) {
    for (int64_t i = 0; i < run.elements; ++i) {
      part.set(run.in_part + i, whole.number(run.in_whole + i));
    }
  }
  return part;
}

void Replica::allocate_buffers(Rank& rank) {
  owns_buffers_ = true;
  for (size_t layer = 0; layer < network().layers.size(); ++layer) {
    for (size_t tensor = 0; holds_layer(layer) && tensor < buffers_of(layer).size(); ++tensor) {
      Slice& value = buffers_[buffers_of(layer)[tensor]].value;
      value = rank.allocate(Purpose::parameter, value.dtype, value.elements, device_);
      if (writes_values()) {
        rank.write(value, initial_buffer(network().layers[layer].buffers[tensor], value.dtype));
      }
    }
  }
  loss_ = rank.allocate(Purpose::metric, DType::fp32, 1, device_);
}

void Replica::adopt(Rank& rank, const std::vector<Slice>& parameters,
                    const std::vector<Slice>& buffers) {
  ensure(!is_allocated_ && parameters.size() == parameters_.size() &&
             buffers.size() == buffers_.size(),
         "a replica without memory is given all of its state");
  is_allocated_ = true;
  owns_parameters_ = false;
  owns_buffers_ = false;
  for (size_t index = 0; index < parameters.size(); ++index) {
    parameters_[index].tensor.value = parameters[index];
  }
  for (size_t index = 0; index < buffers.size(); ++index) {
    buffers_[index].value = buffers[index];
  }
  loss_ = rank.allocate(Purpose::metric, DType::fp32, 1, device_);
}

void Replica::release(Rank& rank) {
  forget_forward(rank);
  for (Forward& forward : kept_) {
    release_forward(rank, forward);
  }
  kept_.clear();
  forget_optimizer(rank);
  for (size_t index = 0; index < parameters_.size(); ++index) {
    forget_gradient(rank, parameters_[index]);
    if (owns_parameters_ && holds(index)) {
      rank.release(parameters_[index].tensor.value);
    }
  }
  for (const Buffer& buffer : buffers_) {
    if (owns_buffers_ && holds_layer(buffer.layer)) {
      rank.release(buffer.value);
    }
  }
  rank.release(loss_);
  is_allocated_ = false;
}

std::vector<Slice> Replica::parameter_values() const {
  std::vector<Slice> values;
  for (const Parameter& parameter : parameters_) {
    values.push_back(parameter.tensor.value);
  }
  return values;
}

std::vector<Slice> Replica::buffer_values() const {
  std::vector<Slice> values;
  for (const Buffer& buffer : buffers_) {
    values.push_back(buffer.value);
  }
  return values;
}

std::vector<Slice> Replica::gradients() const {
  std::vector<Slice> gradients;
  for (const Parameter& parameter : parameters_) {
    if (parameter.trainable) {
      gradients.push_back(parameter.tensor.gradient);
    }
  }
  return gradients;
}

void Replica::ensure_gradient(Rank& rank, Parameter& parameter) {
  if (parameter.tensor.gradient.buffer == no_buffer) {
    parameter.tensor.gradient = rank.allocate(Purpose::gradient, parameter.tensor.value.dtype,
                                              parameter.tensor.value.elements, device_);
  }
}

void Replica::fill_missing_gradients(Rank& rank) {
  for (size_t index = 0; index < parameters_.size(); ++index) {
    Parameter& parameter = parameters_[index];
    if (parameter.trainable && holds(index) && parameter.tensor.gradient.buffer == no_buffer) {
      ensure_gradient(rank, parameter);
      fill_with_zeros(rank, parameter.tensor.gradient);
    }
  }
}

void Replica::forget_gradient(Rank& rank, Parameter& parameter) {
  const Slice gradient = std::exchange(parameter.tensor.gradient, Slice{});
  const bool is_view = std::exchange(parameter.gradient_is_view, false);
  if (gradient.buffer != no_buffer && !is_view) {
    rank.release(gradient);
  }
}

void Replica::forget_optimizer(Rank& rank) {
  for (Parameter& parameter : parameters_) {
    for (const Slice& state : parameter.tensor.state) {
      rank.release(state);
    }
    parameter.tensor.state.clear();
    parameter.tensor.steps = 0;
  }
}

void Replica::fill_with_zeros(Rank& rank, const Slice& data) {
  const double zero = 0;
  KernelCall call;
  call.kernel = Kernel::fill;
  call.writes = {&data, 1};
  call.scalars = {&zero, 1};
  call.memory_traffic = data.bytes();
  rank.compute(call, {compute(), {}, site_id(replica_sites::zero_gradients)});
}

bool Replica::wants_gradient(const Parameter& parameter) const {
  return parameter.trainable && !is_unused(parameter) &&
         (!now_.only_optimizer || is_held_by(*now_.only_optimizer, parameter));
}

bool Replica::is_held_by(size_t optimizer, const Parameter& parameter) const {
  return plan_->optimizers.at(optimizer).holds(parameter.place.layer);
}

void Replica::zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) {
  for (Parameter& parameter : parameters_) {
    if (!is_held_by(optimizer, parameter)) {
      continue;
    }
    if (set_to_none) {
      forget_gradient(rank, parameter);
    } else if (parameter.tensor.gradient.buffer != no_buffer) {
      fill_with_zeros(rank, parameter.tensor.gradient);
    }
  }
}

std::vector<Slice> Replica::gradients_of_step(size_t optimizer, const OwnedStep* owned) const {
  const bool shares_norm = owned != nullptr && owned->norm.has_value();
  std::vector<Slice> gradients;
  for (size_t index = 0; index < parameters_.size(); ++index) {
    const Parameter& parameter = parameters_[index];
    const bool steps = parameter.trainable && is_held_by(optimizer, parameter) && holds(index);
    if (steps && parameter.tensor.gradient.buffer != no_buffer &&
        (!shares_norm || owned->owns[index])) {
      gradients.push_back(parameter.tensor.gradient);
    }
  }
  return gradients;
}

void Replica::clip(Rank& rank, const UpdateOptions& options, const OwnedStep* owned) {
  const std::vector<Slice> gradients = gradients_of_step(options.optimizer, owned);
  if (owned == nullptr || !owned->norm) {
    clip_gradients(rank, options.clipping, gradients, device_, nullptr);
    return;
  }
  OwnedStep counts = *owned;
  for (size_t index = 0; index < counts.owns.size() && !counts.counts.empty(); ++index) {
    counts.owns[index] = counts.owns[index] && counts.counts[index];
  }
  const std::vector<Slice> counted = gradients_of_step(options.optimizer, &counts);
  SharedNorm norm = *owned->norm;
  norm.counted = &counted;
  clip_gradients(rank, options.clipping, gradients, device_, &norm);
}

Ticket Replica::optimizer_step(Rank& rank, const UpdateOptions& options, SiteId site,
                               const OwnedStep* owned) {
  std::vector<OptimizedTensor*> tensors;
  for (size_t index = 0; index < parameters_.size(); ++index) {
    Parameter& parameter = parameters_[index];
    const bool is_own = owned == nullptr || owned->owns[index];
    if (is_own && parameter.trainable && is_held_by(options.optimizer, parameter) && holds(index)) {
      tensors.push_back(&parameter.tensor);
    }
  }
  clip(rank, options, owned);
  const OptimizerPlan optimizer = scheduled(plan_->optimizers[options.optimizer], options);
  return lockstep::optimizer_step(rank, optimizer, kernels_of(*plan_), tensors,
                                  {compute(), {}, site});
}

}  // namespace lockstep
