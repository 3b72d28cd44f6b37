// The backward half of a replica, and the data that its batches hold.
#include <algorithm>
#include <cmath>

#include "model/core/random.hpp"
#include "model/network/attention_part.hpp"
#include "model/network/mixture.hpp"
#include "model/strategy/local_model/replica.hpp"
#include "model/strategy/local_model/replica_sites.hpp"

namespace lockstep {

std::vector<size_t> Replica::layers_last_to_first() const {
  std::vector<size_t> layers;
  for (auto run = now_.trace.rbegin(); run != now_.trace.rend(); ++run) {
    if (run->layer >= now_.first_wanted_layer) {
      layers.push_back(run->layer);
    }
  }
  return layers;
}

const Shape& Replica::output_shape() const {
  return now_.trace.empty() ? network().input_of(0)
                            : network().layers[now_.trace.back().layer].output;
}

Ticket Replica::backward_of_own_loss(Rank& rank, const StepOptions& options, After after) {
  if (plan_->numerics) {
    ensure(std::ssize(options.output_gradient) == now_.current.elements,
           "a gradient of each element of the output");
    now_.gradient = transient(rank, now_.current.elements, plan_->activation_dtype);
    Values values(plan_->activation_dtype, now_.current.elements);
    for (int64_t i = 0; i < values.size(); ++i) {
      values.set(i, options.loss_factor * options.output_gradient[static_cast<size_t>(i)]);
    }
    rank.write(now_.gradient, values);
  }
  return rank.event({compute(), after, site_id(replica_sites::loss_backward)});
}

Ticket Replica::backward_of_loss(Rank& rank, const StepOptions& options, After after) {
  now_.loss_factor = options.loss_factor;
  if (!options.output_gradient.empty()) {
    forget(rank, now_.kept_by_loss);
    return backward_of_own_loss(rank, options, after);
  }
  if (has_loss_in_parts()) {
    return backward_of_loss_parts(rank, options, after);
  }
  const Layer& loss = network().loss_of(static_cast<int32_t>(now_.last_module));
  if (compares_samples(loss.kind)) {
    if (plan_->numerics) {
      now_.gradient = transient(rank, now_.current.elements, now_.current.dtype);
    }
    return now_.comparison.backward(rank, comparison_call(),
                                    {now_.gradient, options.loss_factor, after});
  }
  const Slice reads[] = {now_.current, now_.target};
  KernelCall call;
  call.layer = static_cast<int32_t>(now_.last_module);
  call.kernel = Kernel::loss_backward;
  call.work = flops_of(loss, Pass::input_gradient, now_.samples).count();
  call.computes_in = plan_->activation_dtype;
  call.memory_traffic =
      moved_bytes(loss, Pass::input_gradient, now_.samples, plan_->activation_dtype);
  call.scalars = {&options.loss_factor, 1};
  if (plan_->numerics) {
    now_.gradient = transient(rank, now_.current.elements, now_.current.dtype);
    call.reads = reads;
    call.writes = {&now_.gradient, 1};
  }
  Slice working = hold_for_loss_backward(rank);
  const Ticket done = rank.compute(call, {compute(), after, site_id(replica_sites::loss_backward)});
  forget(rank, working);
  forget(rank, now_.kept_by_loss);
  return done;
}

// One for each parameter that the layer reads, no_buffer where it gets none; `made`: bytes of those
// that did not exist.
std::vector<Slice> Replica::gradients_to_fill(Rank& rank, size_t layer, Bytes& made) {
  const auto ensure_here = [&](Parameter& parameter) {
    made +=
        parameter.tensor.gradient.buffer == no_buffer ? parameter.tensor.value.bytes() : Bytes{};
    ensure_gradient(rank, parameter);
  };
  std::vector<Slice> gradients;
  for (const size_t index : trainable_of(layer)) {
    if (wants_gradient(parameters_[index])) {
      ensure_here(parameters_[index]);
    }
  }
  // A tied weight comes first, where the layer's own would be.
  for (const size_t index : parameters_of(layer)) {
    Parameter& parameter = parameters_[index];
    if (wants_gradient(parameter)) {
      ensure_here(parameter);
      gradients.push_back(parameter.tensor.gradient);
    } else {
      gradients.push_back(Slice{no_buffer, parameter.tensor.value.dtype, 0, 0});
    }
  }
  return gradients;
}

Ticket Replica::backward(Rank& rank, size_t layer, BackwardHalf half) {
  LayerRun& run = run_of(layer);
  const bool has_weights = !parameters_of(layer).empty();
  if (half == BackwardHalf::weights && !has_weights) {
    return {};  // the other half was all of it
  }
  for (const size_t again : begin_recomputation(layer)) {
    recompute(rank, again);
  }
  Bytes made{};
  std::vector<Slice> gradients;
  if (half == BackwardHalf::input) {
    run.output_gradient = now_.gradient;
    gradients.assign(parameters_of(layer).size(), Slice{no_buffer, plan_->parameter_dtype, 0, 0});
  } else {
    gradients = gradients_to_fill(rank, layer, made);
  }
  Slice working = hold(rank, Purpose::workspace, backward_working_set(run, made));
  const bool shares_statistics = run.statistics.buffer != no_buffer;
  const Ticket done = shares_statistics ? backward_of_batch_norm(rank, run, gradients)
                      : are_experts_divided(network().layers[layer])
                          ? backward_of_experts(rank, run, gradients)
                          : backward_of_run(rank, run, std::move(gradients), half);
  forget(rank, working);
  if (half == BackwardHalf::input && has_weights) {
    return done;
  }
  forget(rank, run.weight_copies);
  forget(rank, run.kept);
  forget(rank, run.recomputed);
  if (run.segment != nullptr && &run != &runs_of(*run.segment).back()) {
    forget(rank, run.output);  // the layer behind has had its gradient
  }
  return done;
}

// The network knows what never needs a gradient; its modules know what this forward leaves out.
Replica::Cost Replica::backward_cost(size_t index, BackwardHalf half) const {
  const Layer& layer = network().layers[index];
  const bool changes = !network().modules.empty();
  const bool input = half != BackwardHalf::weights && (!changes || wants_input_gradient(index));
  const bool weight =
      half != BackwardHalf::input &&
      (!changes || std::any_of(parameters_of(index).begin(), parameters_of(index).end(),
                               [&](size_t each) { return wants_gradient(parameters_[each]); }));
  Cost cost;
  for (const auto& [pass, counts] :
       {std::pair(Pass::input_gradient, input), std::pair(Pass::weight_gradient, weight)}) {
    if (counts) {
      cost.work += flops_of(layer, pass, now_.samples).count();
      cost.memory_traffic += moved_bytes(layer, pass, now_.samples, plan_->activation_dtype);
    }
  }
  return cost;
}

// The shortcut's gradient waits for that of the branch before it, which has the type of its result.
void Replica::turn_to_shortcut(Rank& rank, SkipConnection& residual) {
  residual.gradient_of_shortcut = std::exchange(now_.gradient, residual.gradient_of_sum);
  if (!plan_->numerics || now_.gradient.dtype == residual.aside.dtype) {
    return;
  }
  const Slice narrowed = transient(rank, now_.gradient.elements, residual.aside.dtype);
  KernelCall call;
  call.kernel = Kernel::cast;
  call.reads = {&now_.gradient, 1};
  call.writes = {&narrowed, 1};
  call.memory_traffic = now_.gradient.bytes() + narrowed.bytes();
  rank.compute(call, {compute(), {}, site_id(replica_sites::layer_backward)});
  now_.gradient = narrowed;
}

/// The gradient of a sum goes two ways, and the one round the branch comes back at its beginning. A
/// product has a gradient of its own for either factor. Those of what was put aside add up.
void Replica::meet_residual(Rank& rank, const LayerRun& run, std::vector<Slice>& reads,
                            std::vector<Slice>& writes) {
  SkipConnection& residual = now_.residuals[*run.residual];
  const LayerKind kind = network().layers[run.layer].kind;
  if (network().layers[run.layer].aside) {
    const Slice& aside = residual.branch();
    reads.push_back(aside);
    if (residual.gradient_of_sum.buffer == no_buffer) {
      residual.gradient_of_sum = transient(rank, aside.elements, aside.dtype);
      fill_with_zeros(rank, residual.gradient_of_sum);
    }
    writes.push_back(residual.gradient_of_sum);
  } else if (kind == LayerKind::residual_multiply) {
    const Slice& branch = residual.branch();
    reads.push_back(branch);
    residual.gradient_of_sum = transient(rank, branch.elements, branch.dtype);
    writes.push_back(residual.gradient_of_sum);
  } else if (joins_branches(kind)) {
    residual.gradient_of_sum = now_.gradient;
  } else if (kind == LayerKind::residual_begin) {
    reads.push_back(residual.gradient_of_shortcut.buffer != no_buffer
                        ? residual.gradient_of_shortcut
                        : residual.gradient_of_sum);
  }
}

Ticket Replica::backward_of_run(Rank& rank, LayerRun& run, std::vector<Slice> gradients,
                                BackwardHalf half) {
  const Layer& layer = network().layers[run.layer];
  if (layer.kind == LayerKind::residual_shortcut) {
    turn_to_shortcut(rank, now_.residuals[*run.residual]);
    return {};
  }
  if (layer.kind == LayerKind::exchange) {
    return exchange_backward(rank, run);
  }
  if (is_divided_core(layer)) {
    return backward_of_context(rank, run);
  }
  std::vector<Slice> reads;
  std::vector<Slice> writes;
  if (plan_->numerics) {
    const bool is_late = half == BackwardHalf::weights;
    reads = {is_late ? run.output_gradient : now_.gradient, run.input};
    const bool wanted = !is_late && wants_input_gradient(run.layer);
    writes.push_back(wanted ? transient(rank, run.input.elements, run.input.dtype)
                            : Slice{reads.front().buffer, reads.front().dtype, 0, 0});
  }
  for (const size_t parameter : parameters_of(run.layer)) {
    reads.push_back(parameters_[parameter].tensor.value);
  }
  for (const Slice& gradient : gradients) {
    if (gradient.buffer != no_buffer) {
      writes.push_back(gradient);
    } else if (plan_->numerics) {
      writes.push_back(Slice{reads.front().buffer, reads.front().dtype, 0, 0});
    }
  }
  if (plan_->numerics && run.residual) {
    meet_residual(rank, run, reads, writes);
    if (half == BackwardHalf::weights && layer.aside) {
      writes.back() = Slice{reads.front().buffer, reads.front().dtype, 0, 0};  // it has had its own
    }
  }
  now_.gradient = plan_->numerics && writes.front().elements > 0 ? writes.front() : now_.gradient;
  const auto* price = std::get_if<CostArguments>(&layer.arguments);
  const Cost cost = backward_cost(run.layer, half);
  const std::optional<double> second =
      layer.kind == LayerKind::mixture_of_experts ? now_.loss_factor : place_of_part(layer);
  const double scalars[] = {static_cast<double>(now_.samples), second.value_or(0)};
  KernelCall call;
  call.kernel = price != nullptr ? Kernel::timed : Kernel::layer_backward;
  call.layer = static_cast<int32_t>(run.layer);
  const int64_t parts = half == BackwardHalf::both ? 1 : 2;  // a price says nothing of its halves
  call.work = price != nullptr ? (price->backward * now_.samples).count() / parts : cost.work;
  call.computes_in = plan_->activation_dtype;
  call.memory_traffic = cost.memory_traffic;
  call.reads = reads;
  call.writes = writes;
  call.scalars = std::span(scalars).first(second ? 2 : 1);
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

int64_t whole_below(uint64_t key, int64_t turn, uint64_t bound) {
  return static_cast<int64_t>(random_below(key, static_cast<uint64_t>(turn), bound));
}

/// -2, -1, 0, 1 or 2: sums of a few products of them are exact in every floating type.
double small_number(uint64_t key, int64_t turn) {
  return static_cast<double>(whole_below(key, turn, 5)) - 2;
}

/// The rows of the batch's samples, one after the other.
void fill_given(Values& values, const GivenSamples::Rows& rows, const Batch& batch) {
  int64_t i = 0;
  for (const int64_t sample : batch.samples) {
    for (int64_t turn = 0; turn < rows.width; ++turn, ++i) {
      const double number = (*rows.numbers)[static_cast<size_t>(sample * rows.width + turn)];
      if (is_floating(values.dtype())) {
        values.set(i, number);
      } else {
        values.set_integer(i, static_cast<int64_t>(number));
      }
    }
  }
}

}  // namespace

/// Those that every embedding has, where several read parts of a sample: positions are no tokens.
uint64_t tokens_of(const Network& network, size_t module) {
  std::optional<int64_t> fewest;
  for (size_t layer = 0; layer < network.layers.size(); ++layer) {
    const auto* embedding = std::get_if<EmbeddingArguments>(&network.layers[layer].arguments);
    if (embedding != nullptr && network.layers[layer].kind == LayerKind::embedding &&
        (network.modules.empty() || network.modules[module].holds(layer))) {
      fewest = std::min(fewest.value_or(embedding->num_embeddings), embedding->num_embeddings);
    }
  }
  return static_cast<uint64_t>(fewest.value_or(2));
}

namespace {

/// The targets of a binary cross entropy are 0 or 1.
bool is_truth_value(LayerKind kind) {
  return kind == LayerKind::bce_loss || kind == LayerKind::bce_with_logits_loss;
}

/// Small numbers become probabilities over the last dimension, or their logarithms.
void become_probabilities(Values& values, const Layer& loss) {
  const int64_t width = loss.input.empty() ? 1 : loss.input.back();
  const bool logarithms = std::get<LossArguments>(loss.arguments).log_target;
  constexpr double least = 3;  // small numbers begin at -2
  for (int64_t row = 0; row < values.size(); row += width) {
    double sum = 0;
    for (int64_t i = row; i < row + width; ++i) {
      sum += values.number(i) + least;
    }
    for (int64_t i = row; i < row + width; ++i) {
      const double probability = (values.number(i) + least) / sum;
      values.set(i, logarithms ? std::log(probability) : probability);
    }
  }
}

}  // namespace

Values batch_inputs(const TrainingPlan& plan, const Batch& batch, size_t module) {
  const Network& network = plan.whole_network != nullptr ? *plan.whole_network : *plan.network;
  const DType dtype = network.input_dtype_of(module);
  const bool floating = is_floating(dtype);
  const int64_t width = elements_of(network.input_of(module));
  const uint64_t tokens = tokens_of(network, module);
  Values values(floating ? plan.parameter_dtype : dtype, batch.size() * width);
  if (batch.given != nullptr && batch.given->inputs.numbers) {
    fill_given(values, batch.given->inputs, batch);
    return values;
  }
  int64_t i = 0;
  for (const int64_t sample : batch.samples) {
    const uint64_t key = sample_key(plan, sample, 0);
    for (int64_t turn = 0; turn < width; ++turn, ++i) {
      if (floating) {
        values.set(i, small_number(key, turn));
      } else {
        values.set_integer(i, whole_below(key, turn, tokens));
      }
    }
  }
  return values;
}

Values batch_targets(const TrainingPlan& plan, const Batch& batch, size_t module) {
  const Network& network = plan.whole_network != nullptr ? *plan.whole_network : *plan.network;
  const Layer& loss = network.loss_of(static_cast<int32_t>(module));
  const bool classes = has_class_targets(loss.kind);
  const int64_t width = target_elements(loss);
  Values values(classes ? DType::int64 : plan.parameter_dtype, batch.size() * width);
  if (batch.given != nullptr && batch.given->targets.numbers) {
    fill_given(values, batch.given->targets, batch);
    return values;
  }
  int64_t i = 0;
  for (const int64_t sample : batch.samples) {
    const uint64_t key = sample_key(plan, sample, 1);
    for (int64_t turn = 0; turn < width; ++turn, ++i) {
      if (classes) {
        const auto count = static_cast<uint64_t>(target_classes(loss));
        values.set_integer(i, whole_below(key, turn, count));
      } else {
        values.set(i, is_truth_value(loss.kind) ? static_cast<double>(whole_below(key, turn, 2))
                                                : small_number(key, turn));
      }
    }
  }
  if (loss.kind == LayerKind::kl_div_loss) {
    become_probabilities(values, loss);
  }
  return values;
}

}  // namespace lockstep
