// The backward half of a replica, and the data that its batches hold.
#include <algorithm>

#include "model/core/random.hpp"
#include "model/strategy/replica.hpp"
#include "model/strategy/replica_sites.hpp"

namespace lockstep {

bool Replica::wants_input_gradient(size_t layer) const { return layer > first_trainable_layer_; }

std::vector<size_t> Replica::layers_last_to_first() const {
  std::vector<size_t> layers;
  for (auto run = trace_.rbegin(); run != trace_.rend(); ++run) {
    layers.push_back(run->layer);
  }
  return layers;
}

Ticket Replica::backward_of_loss(Rank& rank, const StepOptions& options, After after) {
  const Layer& loss = network().loss;
  const Slice reads[] = {current_, target_};
  KernelCall call;
  call.kernel = Kernel::loss_backward;
  call.work = flops_of(loss, Pass::input_gradient, samples_).count();
  call.computes_in = plan_->activation_dtype;
  call.memory_traffic = moved_bytes(loss, Pass::input_gradient, samples_, plan_->activation_dtype);
  call.scalars = {&options.loss_factor, 1};
  if (plan_->numerics) {
    gradient_ = transient(rank, current_.elements, plan_->activation_dtype);
    call.reads = reads;
    call.writes = {&gradient_, 1};
  }
  return rank.compute(call, {compute(), after, site_id(replica_sites::loss_backward)});
}

Ticket Replica::backward(Rank& rank, size_t layer) {
  // Layers run in definition order, so the trace is sorted.
  const auto run =
      std::lower_bound(trace_.begin(), trace_.end(), layer,
                       [](const LayerRun& each, size_t wanted) { return each.layer < wanted; });
  ensure(run != trace_.end() && run->layer == layer, "backward of a layer that ran");
  if (run->segment != nullptr && run->segment != recomputed_) {
    recompute(rank, *run->segment);
  }
  std::vector<Slice> gradients;
  for (const size_t index : trainable_of_[layer]) {
    ensure_gradient(rank, parameters_[index]);
  }
  // A tied weight comes first, where the layer's own would be.
  for (const size_t index : parameters_of_[layer]) {
    Parameter& parameter = parameters_[index];
    if (parameter.trainable) {
      ensure_gradient(rank, parameter);
      gradients.push_back(parameter.tensor.gradient);
    } else {
      gradients.push_back(Slice{no_buffer, parameter.tensor.value.dtype, 0, 0});
    }
  }
  const Ticket done = backward_of_run(rank, *run, std::move(gradients));
  forget(rank, run->kept);
  forget(rank, run->recomputed);
  if (run->segment != nullptr && &*run != &runs_of(*run->segment).back()) {
    forget(rank, run->output);  // the layer behind has had its gradient
  }
  return done;
}

Ticket Replica::backward_of_run(Rank& rank, LayerRun& run, std::vector<Slice> gradients) {
  const Layer& layer = network().layers[run.layer];
  if (layer.kind == LayerKind::residual_shortcut) {
    // The shortcut's gradient waits for that of the branch before it.
    Residual& residual = residuals_[*run.residual];
    residual.gradient_of_shortcut = std::exchange(gradient_, residual.gradient_of_sum);
    return {};
  }
  std::vector<Slice> reads;
  std::vector<Slice> writes;
  if (plan_->numerics) {
    reads = {gradient_, run.input};
    const bool wanted = wants_input_gradient(run.layer);
    writes.push_back(wanted ? transient(rank, run.input.elements, plan_->activation_dtype)
                            : Slice{gradient_.buffer, gradient_.dtype, 0, 0});
  }
  for (const size_t parameter : parameters_of_[run.layer]) {
    reads.push_back(parameters_[parameter].tensor.value);
  }
  for (const Slice& gradient : gradients) {
    if (plan_->numerics || gradient.buffer != no_buffer) {
      writes.push_back(
          gradient.buffer != no_buffer ? gradient : Slice{gradient_.buffer, gradient_.dtype, 0, 0});
    }
  }
  if (plan_->numerics && run.residual) {
    Residual& residual = residuals_[*run.residual];
    if (layer.kind == LayerKind::residual_add) {
      residual.gradient_of_sum = gradient_;
    } else if (layer.kind == LayerKind::residual_begin) {
      reads.push_back(residual.gradient_of_shortcut.buffer != no_buffer
                          ? residual.gradient_of_shortcut
                          : residual.gradient_of_sum);
    }
  }
  if (plan_->numerics && writes.front().elements > 0) {
    gradient_ = writes.front();
  }
  const auto* price = std::get_if<CostArguments>(&layer.arguments);
  const Flops flops = flops_of(layer, Pass::input_gradient, samples_) +
                      flops_of(layer, Pass::weight_gradient, samples_);
  const double samples = static_cast<double>(samples_);
  KernelCall call;
  call.kernel = price != nullptr ? Kernel::timed : Kernel::layer_backward;
  call.layer = static_cast<int32_t>(run.layer);
  call.work = price != nullptr ? (price->backward * samples_).count() : flops.count();
  call.computes_in = plan_->activation_dtype;
  call.memory_traffic =
      moved_bytes(layer, Pass::input_gradient, samples_, plan_->activation_dtype) +
      moved_bytes(layer, Pass::weight_gradient, samples_, plan_->activation_dtype);
  call.reads = reads;
  call.writes = writes;
  call.scalars = {&samples, 1};
  if (!plan_->numerics && call.work == 0 && call.memory_traffic == Bytes{}) {
    return {};
  }
  return rank.compute(call, {compute(), {}, site_id(replica_sites::layer_backward)});
}

// Data

namespace {

uint64_t sample_key(const TrainingPlan& plan, int64_t sample, uint64_t part) {
  return random_key(random_key(plan.seed, 0x5a3e1eULL + part), static_cast<uint64_t>(sample));
}

}  // namespace

Values batch_inputs(const TrainingPlan& plan, const Batch& batch) {
  const Network& network = *plan.network;
  const bool floating = is_floating(network.input_dtype);
  const int64_t width = elements_of(network.input);
  uint64_t tokens = 2;
  for (const Layer& layer : network.layers) {
    if (const auto* embedding = std::get_if<EmbeddingArguments>(&layer.arguments)) {
      tokens = static_cast<uint64_t>(embedding->num_embeddings);
      break;
    }
  }
  Values values(floating ? plan.activation_dtype : network.input_dtype, batch.size() * width);
  for (int64_t i = 0; i < values.size(); ++i) {
    const uint64_t key = sample_key(plan, batch.samples[static_cast<size_t>(i / width)], 0);
    const auto turn = static_cast<uint64_t>(i % width);
    if (floating) {
      values.set(i, static_cast<double>(random_below(key, turn, 5)) - 2);
    } else {
      values.set_integer(i, static_cast<int64_t>(random_below(key, turn, tokens)));
    }
  }
  return values;
}

Values batch_targets(const TrainingPlan& plan, const Batch& batch) {
  const Layer& loss = plan.network->loss;
  const bool classes = loss.kind == LayerKind::cross_entropy_loss;
  const int64_t outputs = elements_of(loss.input);
  const int64_t width = classes ? outputs / loss.input.back() : outputs;
  Values values(classes ? DType::int64 : plan.activation_dtype, batch.size() * width);
  for (int64_t i = 0; i < values.size(); ++i) {
    const uint64_t key = sample_key(plan, batch.samples[static_cast<size_t>(i / width)], 1);
    const auto turn = static_cast<uint64_t>(i % width);
    if (classes) {
      const auto count = static_cast<uint64_t>(loss.input.back());
      values.set_integer(i, static_cast<int64_t>(random_below(key, turn, count)));
    } else {
      values.set(i, static_cast<double>(random_below(key, turn, 5)) - 2);
    }
  }
  return values;
}

}  // namespace lockstep
