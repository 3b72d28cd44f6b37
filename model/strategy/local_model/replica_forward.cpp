// The forward half of a replica, and the part of it that activation checkpointing runs again.
#include <algorithm>

#include "model/network/attention_part.hpp"
#include "model/network/mixture.hpp"
#include "model/strategy/local_model/replica.hpp"
#include "model/strategy/local_model/replica_batch_norm.hpp"
#include "model/strategy/local_model/replica_sites.hpp"

namespace lockstep {

Slice Replica::transient(Rank& rank, int64_t elements, DType dtype) {
  now_.transient.push_back(rank.allocate(Purpose::workspace, dtype, elements, device_));
  return now_.transient.back();
}

namespace {

Values constant(const Values& like, double value) {
  Values values(like.dtype(), like.size());
  for (int64_t i = 0; i < values.size(); ++i) {
    values.set(i, value);
  }
  return values;
}

}  // namespace

Slice Replica::bring_input(Rank& rank, const Batch& batch, const StepOptions& options) {
  const Network& net = network();
  const size_t first = options.modules.empty() ? 0 : options.modules.front();
  const DType given = net.input_dtype_of(first);
  const DType dtype = is_floating(given) ? plan_->parameter_dtype : given;
  const int64_t elements = now_.samples * elements_of(net.input_of(first));
  const Slice host = rank.allocate(Purpose::input, dtype, elements, host_device);
  if (writes_values()) {
    rank.write(host, own_positions(batch_inputs(*plan_, batch, first), net.input_of(first)));
  }
  return host;
}

Slice Replica::bring_target(Rank& rank, const Batch& batch, const StepOptions& options) {
  const Layer& loss = network().loss_of(static_cast<int32_t>(now_.last_module));
  const bool classes = has_class_targets(loss.kind);
  const int64_t targets = target_elements(loss);
  const DType dtype = classes ? DType::int64 : plan_->parameter_dtype;
  const Slice host = rank.allocate(Purpose::input, dtype, now_.samples * targets, host_device);
  if (writes_values()) {
    const Values goal = batch_targets(*plan_, batch, now_.last_module);
    const Values own = own_positions(goal, loss.input);
    rank.write(host, options.target ? constant(own, *options.target) : own);
  }
  return host;
}

void Replica::copy_to_device(Rank& rank, const Slice& host, const Slice& there, After after) {
  rank.copy(host, there, {compute(), after, site_id(replica_sites::bring_batch)});
}

void Replica::bring_batch(Rank& rank, const Batch& batch, const StepOptions& options, After after) {
  const Slice input = bring_input(rank, batch, options);
  const Slice target = bring_target(rank, batch, options);
  now_.input = rank.allocate(Purpose::input, input.dtype, input.elements, device_);
  now_.target = rank.allocate(Purpose::input, target.dtype, target.elements, device_);
  copy_to_device(rank, input, now_.input, after);
  copy_to_device(rank, target, now_.target, after);
  rank.release(input);
  rank.release(target);
  now_.transient = {now_.input, now_.target};
  now_.current = now_.input;
}

bool Replica::runs(size_t layer, const StepOptions& options) const {
  const std::vector<size_t>& skipped = options.skipped_layers;
  const auto holds = [&](size_t module) { return network().modules[module].holds(layer); };
  return !std::binary_search(skipped.begin(), skipped.end(), layer) &&
         (options.modules.empty() ||
          std::any_of(options.modules.begin(), options.modules.end(), holds));
}

void Replica::find_first_wanted_layer(const StepOptions& options) {
  now_.first_wanted_layer = network().layers.size();
  for (const Parameter& parameter : parameters_) {
    if (parameter.place.layer < now_.first_wanted_layer && wants_gradient(parameter) &&
        runs(parameter.place.layer, options)) {
      now_.first_wanted_layer = parameter.place.layer;
    }
  }
}

Ticket Replica::forward(Rank& rank, const Batch& batch, const StepOptions& options, After after) {
  begin_forward(rank, batch, options, after);
  for (size_t layer = 0; layer < network().layers.size(); ++layer) {
    forward_layer(rank, layer, options);
  }
  return end_forward(rank, options);
}

void Replica::begin_any_forward(Rank& rank, const Batch& batch, const StepOptions& options) {
  forget_forward(rank);
  now_.trace.reserve(held_layers_.empty()
                         ? network().layers.size()
                         : static_cast<size_t>(std::ranges::count(held_layers_, true)));
  now_.number = ++forwards_;
  now_.only_optimizer = options.only_optimizer;
  now_.loss_factor = 1;
  now_.unused.clear();
  now_.choices.clear();
  now_.expert_runs.clear();
  now_.context_runs.clear();
  now_.last_module = options.modules.empty() ? 0 : options.modules.back();
  find_first_wanted_layer(options);
  now_.samples = batch.size();
}

void Replica::begin_forward(Rank& rank, const Batch& batch, const StepOptions& options,
                            After after) {
  begin_any_forward(rank, batch, options);
  bring_batch(rank, batch, options, after);
}

void Replica::forward_layer(Rank& rank, size_t layer, const StepOptions& options) {
  if (runs(layer, options)) {
    check_batch_norm(network().layers[layer], {now_.samples, options.training},
                     {synchronises_statistics_, plan_->autocast_of_cuda, rank.world_size()});
    run_layer(rank, layer, options.training);
  }
  const CheckpointedSegment* segment = network().segment_of(layer);
  if (options.training && segment != nullptr && segment->last == layer) {
    forget_inside(rank, *segment);
  }
}

SampleComparison::Call Replica::comparison_call() const {
  return {plan_,
          &network().loss_of(static_cast<int32_t>(now_.last_module)),
          static_cast<int32_t>(now_.last_module),
          device_,
          compute(),
          now_.current,
          now_.target,
          now_.samples,
          now_.first_wanted_layer < network().layers.size()};
}

Ticket Replica::end_forward(Rank& rank, const StepOptions& options) {
  const Layer& loss = network().loss_of(static_cast<int32_t>(now_.last_module));
  const Slice reads[] = {now_.current, now_.target};
  KernelCall call;
  call.layer = static_cast<int32_t>(now_.last_module);
  call.kernel = Kernel::loss_forward;
  call.work = flops_of(loss, Pass::forward, now_.samples).count();
  call.computes_in = plan_->activation_dtype;
  call.memory_traffic = moved_bytes(loss, Pass::forward, now_.samples, plan_->activation_dtype);
  call.reads = plan_->numerics ? std::span<const Slice>(reads) : std::span<const Slice>();
  call.writes = {&loss_, 1};
  Slice working = begin_loss(rank, options.training);
  const Ticket done =
      has_loss_in_parts() ? forward_of_loss_parts(rank)
      : compares_samples(loss.kind)
          ? now_.comparison.forward(rank, comparison_call(), options.training, loss_)
          : rank.compute(call, {compute(), {}, site_id(replica_sites::loss_forward)});
  forget(rank, working);
  free_weight_copies(rank, options.training);
  return done;
}

// Which skip connection a residual layer belongs to, or a layer that reads what was put aside.
std::optional<size_t> Replica::residual_of(size_t layer) {
  if (const auto& aside = network().layers[layer].aside) {
    return run_of(aside->begin).residual;
  }
  switch (network().layers[layer].kind) {
    case LayerKind::residual_begin:
      now_.open_residuals.push_back(now_.residuals.size());
      now_.residuals.emplace_back();
      return now_.open_residuals.back();
    case LayerKind::residual_shortcut: return now_.open_residuals.back();
    case LayerKind::residual_add:
    case LayerKind::residual_concatenate:
    case LayerKind::residual_multiply:
    case LayerKind::aside_end: {
      const size_t closed = now_.open_residuals.back();
      now_.open_residuals.pop_back();
      return closed;
    }
    default: return std::nullopt;
  }
}

// The markers cost nothing themselves.
void Replica::pass_residual(const LayerRun& run) {
  const LayerKind kind = network().layers[run.layer].kind;
  if (kind == LayerKind::residual_begin) {
    now_.residuals[*run.residual].remembered = now_.current;
  } else if (kind == LayerKind::residual_shortcut) {
    now_.residuals[*run.residual].aside =
        std::exchange(now_.current, now_.residuals[*run.residual].remembered);
  }
}

void Replica::run_layer(Rank& rank, size_t layer, bool training) {
  LayerRun run;
  run.layer = layer;
  run.segment = training ? network().segment_of(layer) : nullptr;
  run.residual = residual_of(layer);
  now_.trace.push_back(run);
  forward_of_run(rank, now_.trace.back(), {.training = training});
}

DType Replica::output_type_of(const LayerRun& run) const {
  return output_type(network().layers[run.layer], run.input.dtype,
                     run.residual ? now_.residuals[*run.residual].branch().dtype : run.input.dtype,
                     plan_->types());
}

void Replica::forward_of_run(Rank& rank, LayerRun& run, const Turn& turn) {
  const Layer& layer = network().layers[run.layer];
  pass_residual(run);
  run.input = now_.current;
  Slice working = keep_for_backward(rank, run, turn);
  Slice output;
  if (plan_->numerics && layer.kind != LayerKind::residual_shortcut) {
    output = rank.allocate(Purpose::activation, output_type_of(run),
                           now_.samples * elements_of(layer.output), device_);
    now_.current = output;
  }
  if (layer.kind == LayerKind::exchange) {
    exchange_forward(rank, run, output);
  } else if (is_divided_core(layer)) {
    forward_of_context(rank, run, turn, output);
  } else if (are_experts_divided(layer)) {
    forward_of_experts(rank, run, turn, output);
  } else if (synchronises_statistics_ && turn.training && layer.kind == LayerKind::batch_norm &&
             rank.world_size() > 1) {
    forward_of_batch_norm(rank, run, turn, output);
  } else {
    submit_forward(rank, run, turn, output);
  }
  forget(rank, working);
  if (turn.again && turn.is_last) {
    // Its first output lives on outside of the segment, and no backward reads this one.
    if (output.buffer != no_buffer) {
      rank.release(output);
    }
  } else {
    run.output = output;
  }
}

// FairScale keeps batch norm from tracking its statistics in the first of two forwards.
bool Replica::updates_buffers(const LayerRun& run, const Turn& turn) const {
  if (network().layers[run.layer].kind == LayerKind::buffer) {
    return false;  // only the program changes what it has registered
  }
  return run.segment == nullptr || turn.again ||
         run.segment->recomputation != Recomputation::fairscale;
}

Replica::Cost Replica::cost_of(const LayerRun& run, const Turn& turn) const {
  const Layer& layer = network().layers[run.layer];
  if (turn.again && run.segment->recomputation == Recomputation::attention_core) {
    const Work& core = layer.attention_core->work;
    return {(core.flops * now_.samples).count(),
            Bytes(size_of(plan_->activation_dtype)) * core.elements * now_.samples};
  }
  const auto* price = std::get_if<CostArguments>(&layer.arguments);
  return {price != nullptr ? (price->forward * now_.samples).count()
                           : flops_of(layer, Pass::forward, now_.samples).count(),
          moved_bytes(layer, Pass::forward, now_.samples, plan_->activation_dtype)};
}

void Replica::submit_forward(Rank& rank, const LayerRun& run, const Turn& turn,
                             const Slice& output) {
  const Layer& layer = network().layers[run.layer];
  const bool runs = layer.work_of(Pass::forward).runs || plan_->numerics;
  if (!runs || layer.kind == LayerKind::residual_shortcut) {
    return;
  }
  std::vector<Slice> reads;
  std::vector<Slice> writes;
  if (plan_->numerics) {
    reads.push_back(run.input);
    writes.push_back(output);
  }
  for (const size_t parameter : parameters_of(run.layer)) {
    reads.push_back(parameters_[parameter].tensor.value);
  }
  if (plan_->numerics && (joins_branches(layer.kind) || layer.aside)) {
    reads.push_back(now_.residuals[*run.residual].branch());
  }
  if (routes_tokens_ && layer.kind == LayerKind::mixture_of_experts && turn.training &&
      !turn.again) {
    writes.push_back(begin_counting(rank, run));
  }
  if (updates_buffers(run, turn)) {
    for (const size_t buffer : buffers_of(run.layer)) {
      writes.push_back(buffers_[buffer].value);
    }
  }
  const bool keeps_nothing = (run.segment != nullptr && !turn.again) ||
                             (turn.training && run.layer < now_.first_wanted_layer);
  const std::optional<double> place = place_of_part(layer);
  const double scalars[] = {static_cast<double>(now_.samples), turn.training ? 1.0 : 0.0,
                            keeps_nothing ? 1.0 : 0.0, place.value_or(0)};
  const Cost cost = cost_of(run, turn);
  KernelCall call;
  call.kernel = std::holds_alternative<CostArguments>(layer.arguments) ? Kernel::timed
                                                                       : Kernel::layer_forward;
  call.layer = static_cast<int32_t>(run.layer);
  call.work = cost.work;
  call.computes_in = plan_->activation_dtype;
  call.memory_traffic = cost.memory_traffic;
  call.reads = reads;
  call.writes = writes;
  call.scalars = std::span(scalars).first(place ? 4 : keeps_nothing ? 3 : 2);
  const std::string_view site =
      turn.again ? replica_sites::recompute : replica_sites::layer_forward;
  rank.compute(call, {compute(), {}, site_id(site)});
}

// Activation checkpointing

Replica::LayerRun& Replica::run_of(size_t layer) {
  // Layers run in definition order, so the trace is sorted.
  const auto run = std::ranges::lower_bound(now_.trace, layer, {}, &LayerRun::layer);
  ensure(run != now_.trace.end() && run->layer == layer, "a layer that ran");
  return *run;
}

std::span<Replica::LayerRun> Replica::runs_of(const CheckpointedSegment& segment) {
  const auto begin = std::ranges::lower_bound(now_.trace, segment.first, {}, &LayerRun::layer);
  const auto end = std::ranges::upper_bound(now_.trace, segment.last, {}, &LayerRun::layer);
  return {begin, end};
}

// The output of the segment is kept: it is the input of the next layer.
void Replica::forget_inside(Rank& rank, const CheckpointedSegment& segment) {
  const std::span<LayerRun> runs = runs_of(segment);
  for (size_t i = 0; i + 1 < runs.size(); ++i) {
    forget(rank, runs[i].output);
  }
}

std::vector<size_t> Replica::begin_recomputation(size_t layer) {
  const LayerRun& first = run_of(layer);
  std::vector<size_t> layers;
  if (first.segment == nullptr || first.segment == now_.recomputed) {
    return layers;
  }
  now_.recomputed = first.segment;
  const std::span<LayerRun> runs = runs_of(*first.segment);
  now_.current = runs.front().input;
  for (const LayerRun& run : runs) {
    layers.push_back(run.layer);
  }
  return layers;
}

void Replica::recompute(Rank& rank, size_t layer) {
  LayerRun& run = run_of(layer);
  const bool is_last = &run == &runs_of(*run.segment).back();
  forward_of_run(rank, run, {.training = true, .again = true, .is_last = is_last});
}

void Replica::forget(Rank& rank, Slice& memory) {
  if (memory.buffer != no_buffer) {
    rank.release(std::exchange(memory, Slice{}));
  }
}

void Replica::forget_forward(Rank& rank) { release_forward(rank, now_); }

void Replica::release_forward(Rank& rank, Forward& forward) {
  for (LayerRun& run : forward.trace) {
    forget(rank, run.kept);
    forget(rank, run.recomputed);
    forget(rank, run.weight_copies);
    forget(rank, run.output);
  }
  forget(rank, forward.kept_by_loss);
  forget(rank, forward.greatest_scores);
  forget(rank, forward.score_sums);
  forward.comparison.forget(rank);
  for (const Slice& memory : forward.transient) {
    rank.release(memory);
  }
  forward.trace.clear();
  forward.transient.clear();
  forward.residuals.clear();
  forward.open_residuals.clear();
  forward.recomputed = nullptr;
}

}  // namespace lockstep
