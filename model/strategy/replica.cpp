#include "model/strategy/replica.hpp"

#include <algorithm>

#include "model/core/random.hpp"
#include "model/network/arithmetic/initial_values.hpp"
#include "model/strategy/replica_sites.hpp"

namespace lockstep {

// State

Replica::Replica(const TrainingPlan& plan, DeviceId device) : plan_(&plan), device_(device) {
  const size_t layers = network().layers.size();
  parameters_of_.resize(layers);
  trainable_of_.resize(layers);
  buffers_of_.resize(layers);
  first_trainable_layer_ = layers;
  for (const ParameterPlace place : network().parameters()) {
    const bool trainable = network().parameter(place).trainable;
    parameters_of_[place.layer].push_back(parameters_.size());
    if (trainable) {
      trainable_of_[place.layer].push_back(parameters_.size());
      first_trainable_layer_ = std::min(first_trainable_layer_, place.layer);
    }
    parameters_.push_back({place, {}, trainable, false});
  }
  for (size_t layer = 0; layer < layers; ++layer) {
    if (const auto tied = network().layers[layer].tied_layer) {
      parameters_of_[layer].insert(parameters_of_[layer].begin(), parameters_of_[*tied].front());
    }
    for (const BufferTensor& tensor : network().layers[layer].buffers) {
      buffers_of_[layer].push_back(buffers_.size());
      buffers_.push_back({layer, Slice::of_size(tensor.dtype, tensor.elements())});
    }
  }
}

void Replica::allocate(Rank& rank, uint64_t variant) {
  if (std::exchange(is_allocated_, true)) {
    return;
  }
  owns_values_ = true;
  const Initialisation how =
      plan_->integer_values ? Initialisation::small_integers : Initialisation::uniform_fan_in;
  for (size_t index = 0; index < parameters_.size(); ++index) {
    const ParameterPlace place = parameters_[index].place;
    Slice& value = parameters_[index].tensor.value;
    value = rank.allocate(Purpose::parameter, plan_->parameter_dtype,
                          network().parameter(place).elements(), device_);
    if (writes_values()) {
      const uint64_t key = random_key(random_key(plan_->seed, variant), index);
      rank.write(value, initial_parameter(network().layers[place.layer], place.tensor,
                                          plan_->parameter_dtype, how, key));
    }
  }
  for (size_t layer = 0; layer < network().layers.size(); ++layer) {
    for (size_t tensor = 0; tensor < buffers_of_[layer].size(); ++tensor) {
      Slice& value = buffers_[buffers_of_[layer][tensor]].value;
      value = rank.allocate(Purpose::parameter, value.dtype, value.elements, device_);
      if (writes_values()) {
        rank.write(value, initial_buffer(network().layers[layer].buffers[tensor]));
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
  owns_values_ = false;
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
  forget_optimizer(rank);
  for (Parameter& parameter : parameters_) {
    forget_gradient(rank, parameter);
    if (owns_values_) {
      rank.release(parameter.tensor.value);
    }
  }
  for (const Buffer& buffer : buffers_) {
    if (owns_values_) {
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
  for (Parameter& parameter : parameters_) {
    if (parameter.trainable && parameter.tensor.gradient.buffer == no_buffer) {
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

void Replica::zero_gradients(Rank& rank, bool set_to_none) {
  for (Parameter& parameter : parameters_) {
    if (set_to_none) {
      forget_gradient(rank, parameter);
    } else if (parameter.tensor.gradient.buffer != no_buffer) {
      fill_with_zeros(rank, parameter.tensor.gradient);
    }
  }
}

Ticket Replica::optimizer_step(Rank& rank, SiteId site, Ticket after) {
  std::vector<OptimizedTensor*> tensors;
  for (Parameter& parameter : parameters_) {
    if (parameter.trainable) {
      tensors.push_back(&parameter.tensor);
    }
  }
  return lockstep::optimizer_step(rank, plan_->optimizer, plan_->numerics, tensors, site, after);
}

// Forward

Slice Replica::transient(Rank& rank, int64_t elements, DType dtype) {
  transient_.push_back(rank.allocate(Purpose::workspace, dtype, elements, device_));
  return transient_.back();
}

void Replica::bring_batch(Rank& rank, const Batch& batch, After after) {
  const Network& net = network();
  samples_ = batch.size();
  const bool classes = net.loss.kind == LayerKind::cross_entropy_loss;
  const int64_t outputs = elements_of(net.loss.input);
  const int64_t targets = classes ? outputs / net.loss.input.back() : outputs;
  const DType input_dtype =
      is_floating(net.input_dtype) ? plan_->activation_dtype : net.input_dtype;
  const DType target_dtype = classes ? DType::int64 : plan_->activation_dtype;
  const int64_t input_elements = samples_ * elements_of(net.input);
  const Slice host_input = rank.allocate(Purpose::input, input_dtype, input_elements, host_device);
  const Slice host_target =
      rank.allocate(Purpose::input, target_dtype, samples_ * targets, host_device);
  if (writes_values()) {
    rank.write(host_input, batch_inputs(*plan_, batch));
    rank.write(host_target, batch_targets(*plan_, batch));
  }
  input_ = rank.allocate(Purpose::input, input_dtype, input_elements, device_);
  target_ = rank.allocate(Purpose::input, target_dtype, samples_ * targets, device_);
  const SiteId site = site_id(replica_sites::bring_batch);
  rank.copy(host_input, input_, {compute(), after, site});
  rank.copy(host_target, target_, {compute(), after, site});
  rank.release(host_input);
  rank.release(host_target);
  transient_ = {input_, target_};
  current_ = input_;
}

namespace {

// As torch.nn.functional.batch_norm, which looks at the shape before any work is queued.
void refuse_single_value(const Layer& layer, int64_t samples, bool training) {
  const auto* arguments = std::get_if<BatchNormArguments>(&layer.arguments);
  if (arguments != nullptr && (training || !arguments->track_running_stats) &&
      samples * elements_of(layer.input) <= arguments->num_features) {
    throw ProgramException(site_id(replica_sites::layer_forward),
                           "expected more than 1 value per channel when training batch norm; use "
                           "a batch size of at least 2 on every device, or drop_last");
  }
}

}  // namespace

Ticket Replica::forward(Rank& rank, const Batch& batch, const StepOptions& options, After after) {
  forget_forward(rank);
  bring_batch(rank, batch, after);
  for (size_t layer = 0; layer < network().layers.size(); ++layer) {
    if (!std::binary_search(options.skipped_layers.begin(), options.skipped_layers.end(), layer)) {
      refuse_single_value(network().layers[layer], samples_, options.training);
      run_layer(rank, layer, options);
    }
  }
  const Layer& loss = network().loss;
  const Slice reads[] = {current_, target_};
  KernelCall call;
  call.kernel = Kernel::loss_forward;
  call.work = flops_of(loss, Pass::forward, samples_).count();
  call.memory_traffic = moved_bytes(loss, Pass::forward, samples_, plan_->activation_dtype);
  call.reads = plan_->numerics ? std::span<const Slice>(reads) : std::span<const Slice>();
  call.writes = {&loss_, 1};
  return rank.compute(call, {compute(), {}, site_id(replica_sites::loss_forward)});
}

// Ties a residual layer to its skip connection; the markers cost nothing themselves.
void Replica::enter_residual(size_t layer, LayerRun& run) {
  switch (network().layers[layer].kind) {
    case LayerKind::residual_begin:
      open_residuals_.push_back(residuals_.size());
      residuals_.push_back({current_, {}, {}, {}});
      run.residual = open_residuals_.back();
      break;
    case LayerKind::residual_shortcut:
      run.residual = open_residuals_.back();
      residuals_[*run.residual].aside =
          std::exchange(current_, residuals_[*run.residual].remembered);
      break;
    case LayerKind::residual_add:
      run.residual = open_residuals_.back();
      open_residuals_.pop_back();
      break;
    default: break;
  }
}

Ticket Replica::run_layer(Rank& rank, size_t index, const StepOptions& options) {
  const Layer& layer = network().layers[index];
  LayerRun run;
  run.layer = index;
  enter_residual(index, run);
  run.input = current_;
  const Bytes kept = Bytes(size_of(plan_->activation_dtype)) * layer.kept_elements * samples_ +
                     layer.kept_fixed * samples_;
  if (options.training && kept > Bytes{} && !plan_->numerics) {
    run.kept = rank.allocate(Purpose::activation, DType::uint8, kept.count(), device_);
  }
  if (plan_->numerics && layer.kind != LayerKind::residual_shortcut) {
    run.output = rank.allocate(Purpose::activation, plan_->activation_dtype,
                               samples_ * elements_of(layer.output), device_);
    current_ = run.output;
  }
  std::vector<Slice> reads;
  std::vector<Slice> writes;
  if (plan_->numerics) {
    reads.push_back(run.input);
    writes.push_back(run.output);
  }
  for (const size_t parameter : parameters_of_[index]) {
    reads.push_back(parameters_[parameter].tensor.value);
  }
  if (plan_->numerics && layer.kind == LayerKind::residual_add) {
    const Residual& residual = residuals_[*run.residual];
    reads.push_back(residual.aside.buffer != no_buffer ? residual.aside : residual.remembered);
  }
  for (const size_t buffer : buffers_of_[index]) {
    writes.push_back(buffers_[buffer].value);
  }
  trace_.push_back(run);
  const auto* price = std::get_if<CostArguments>(&layer.arguments);
  if (!layer.work_of(Pass::forward).runs && !plan_->numerics) {
    return {};
  }
  if (layer.kind == LayerKind::residual_shortcut) {
    return {};
  }
  const double scalars[] = {static_cast<double>(samples_), options.training ? 1.0 : 0.0};
  KernelCall call;
  call.kernel = price != nullptr ? Kernel::timed : Kernel::layer_forward;
  call.layer = static_cast<int32_t>(index);
  call.work = price != nullptr ? (price->forward * samples_).count()
                               : flops_of(layer, Pass::forward, samples_).count();
  call.memory_traffic = moved_bytes(layer, Pass::forward, samples_, plan_->activation_dtype);
  call.reads = reads;
  call.writes = writes;
  call.scalars = scalars;
  return rank.compute(call, {compute(), {}, site_id(replica_sites::layer_forward)});
}

void Replica::forget_forward(Rank& rank) {
  for (const LayerRun& run : trace_) {
    for (const Slice& memory : {run.kept, run.output}) {
      if (memory.buffer != no_buffer) {
        rank.release(memory);
      }
    }
  }
  for (const Slice& memory : transient_) {
    rank.release(memory);
  }
  trace_.clear();
  transient_.clear();
  residuals_.clear();
  open_residuals_.clear();
}

}  // namespace lockstep
