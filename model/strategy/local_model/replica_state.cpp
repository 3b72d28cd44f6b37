#include "model/strategy/local_model/replica_state.hpp"

#include <algorithm>

#include "model/core/ensure.hpp"
#include "model/core/random.hpp"
#include "model/network/arithmetic/initial_values.hpp"
#include "model/network/output_type.hpp"
#include "model/strategy/local_model/replica_sites.hpp"

namespace lockstep {

ReplicaState::ReplicaState(const TrainingPlan& plan, DeviceId device)
    : plan_(&plan), device_(device), layout_(layout_of(plan)) {
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

void ReplicaState::hold_only(const std::vector<bool>& layers) {
  ensure(!is_allocated_ && layers.size() == network().layers.size(), "said of every layer, once");
  held_layers_ = layers;
  held_parameters_.assign(parameters_.size(), false);
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    for (const size_t parameter : parameters_of(layer)) {
      held_parameters_[parameter] = held_parameters_[parameter] || layers[layer];
    }
  }
}

size_t ReplicaState::held_layers() const {
  return held_layers_.empty() ? network().layers.size()
                              : static_cast<size_t>(std::ranges::count(held_layers_, true));
}

void ReplicaState::share_layers(const TensorRanks& ranks) {
  ensure(!is_allocated_, "parts are chosen before they get memory");
  division_.layers = ranks;
  division_.experts.parallel = ranks;
  division_.exchanged_types = input_types(network(), plan_->types());
}

void ReplicaState::share_positions(const TensorRanks& ranks) {
  ensure(!is_allocated_, "parts are chosen before they get memory");
  division_.positions = ranks;
}

void ReplicaState::allocate(Rank& rank, uint64_t variant) {
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

void ReplicaState::allocate_in(Rank& rank, const std::vector<Slice>& parameters, uint64_t variant) {
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

void ReplicaState::allocate_without_parameters(Rank& rank) {
  if (!std::exchange(is_allocated_, true)) {
    allocate_buffers(rank);
  }
}

Values ReplicaState::initial_value(size_t parameter, uint64_t variant) const {
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
  for (const TensorRun& run : cut->runs_of(division_.part_index(*cut))) {
    for (int64_t i = 0; i < run.elements; ++i) {
      part.set(run.in_part + i, whole.number(run.in_whole + i));
    }
  }
  return part;
}

void ReplicaState::allocate_buffers(Rank& rank) {
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

void ReplicaState::adopt(Rank& rank, const std::vector<Slice>& parameters,
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

void ReplicaState::release(Rank& rank) {
  forget_optimizer(rank);
  for (size_t index = 0; index < parameters_.size(); ++index) {
    forget_gradient(rank, parameters_[index]);
    if (owns_parameters_ && holds(index)) {
      rank.release(parameters_[index].tensor.value);
    }
  }
  for (const ReplicaBuffer& buffer : buffers_) {
    if (owns_buffers_ && holds_layer(buffer.layer)) {
      rank.release(buffer.value);
    }
  }
  rank.release(loss_);
  is_allocated_ = false;
}

std::vector<Slice> ReplicaState::parameter_values() const {
  std::vector<Slice> values;
  for (const ReplicaParameter& parameter : parameters_) {
    values.push_back(parameter.tensor.value);
  }
  return values;
}

std::vector<Slice> ReplicaState::buffer_values() const {
  std::vector<Slice> values;
  for (const ReplicaBuffer& buffer : buffers_) {
    values.push_back(buffer.value);
  }
  return values;
}

std::vector<Slice> ReplicaState::gradients() const {
  std::vector<Slice> gradients;
  for (const ReplicaParameter& parameter : parameters_) {
    if (parameter.trainable) {
      gradients.push_back(parameter.tensor.gradient);
    }
  }
  return gradients;
}

void ReplicaState::ensure_gradient(Rank& rank, ReplicaParameter& parameter) const {
  if (parameter.tensor.gradient.buffer == no_buffer) {
    parameter.tensor.gradient = rank.allocate(Purpose::gradient, parameter.tensor.value.dtype,
                                              parameter.tensor.value.elements, device_);
  }
}

void ReplicaState::fill_missing_gradients(Rank& rank) {
  for (size_t index = 0; index < parameters_.size(); ++index) {
    ReplicaParameter& parameter = parameters_[index];
    if (parameter.trainable && holds(index) && parameter.tensor.gradient.buffer == no_buffer) {
      ensure_gradient(rank, parameter);
      fill_with_zeros(rank, parameter.tensor.gradient);
    }
  }
}

void ReplicaState::forget_gradient(Rank& rank, ReplicaParameter& parameter) const {
  const Slice gradient = std::exchange(parameter.tensor.gradient, Slice{});
  const bool is_view = std::exchange(parameter.gradient_is_view, false);
  if (gradient.buffer != no_buffer && !is_view) {
    rank.release(gradient);
  }
}

void ReplicaState::forget_optimizer(Rank& rank) {
  for (ReplicaParameter& parameter : parameters_) {
    for (const Slice& state : parameter.tensor.state) {
      rank.release(state);
    }
    parameter.tensor.state.clear();
    parameter.tensor.steps = 0;
  }
}

void ReplicaState::fill_with_zeros(Rank& rank, const Slice& data) const {
  const double zero = 0;
  KernelCall call;
  call.kernel = Kernel::fill;
  call.writes = {&data, 1};
  call.scalars = {&zero, 1};
  call.memory_traffic = data.bytes();
  rank.compute(call, {compute(), {}, site_id(replica_sites::zero_gradients)});
}

}  // namespace lockstep
