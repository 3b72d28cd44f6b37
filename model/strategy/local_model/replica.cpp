#include "model/strategy/local_model/replica.hpp"

#include <algorithm>

#include "model/core/ensure.hpp"
#include "model/network/mixture.hpp"
#include "model/strategy/local_model/batch_arrival.hpp"
#include "model/strategy/local_model/context_pass.hpp"
#include "model/strategy/local_model/counted_memory.hpp"
#include "model/strategy/local_model/divided_experts.hpp"
#include "model/strategy/local_model/layer_exchange.hpp"
#include "model/strategy/local_model/layer_kernels.hpp"
#include "model/strategy/local_model/loss_pass.hpp"
#include "model/strategy/local_model/residual_branches.hpp"
#include "model/strategy/local_model/shared_batch_norm.hpp"

namespace lockstep {

Replica::Replica(const TrainingPlan& plan, DeviceId device) : state_(plan, device), routed_(plan) {}

void Replica::release(Rank& rank) {
  forwards_.release(rank);
  state_.release(rank);
}

const Shape& Replica::output_shape() const {
  const ForwardRecord& now = forwards_.now();
  return now.trace.empty() ? network().input_of(0)
                           : network().layers[now.trace.back().layer].output;
}

// Forward

Ticket Replica::forward(Rank& rank, const Batch& batch, const StepOptions& options, After after) {
  begin_forward(rank, batch, options, after);
  for (size_t layer = 0; layer < network().layers.size(); ++layer) {
    forward_layer(rank, layer, options);
  }
  return end_forward(rank, options);
}

ForwardRecord& Replica::begin_record(Rank& rank, const Batch& batch, const StepOptions& options) {
  forget_forward(rank);
  ForwardRecord& now = forwards_.now();
  now.trace.reserve(state_.held_layers());
  now.number = forwards_.next_number();
  now.device = device();
  now.only_optimizer = options.only_optimizer;
  now.loss.factor = 1;
  now.unused.clear();
  now.choices.clear();
  now.expert_runs.clear();
  now.context_runs.clear();
  now.last_module = options.modules.empty() ? 0 : options.modules.back();
  now.first_wanted_layer = first_wanted_layer(state_, now, options);
  now.samples = batch.size();
  return now;
}

void Replica::begin_forward(Rank& rank, const Batch& batch, const StepOptions& options,
                            After after) {
  BatchArrival(state_, begin_record(rank, batch, options)).bring(rank, batch, options, after);
}

void Replica::begin_part(Rank& rank, const Batch& batch, const StepOptions& options,
                         const Part& part) {
  ForwardRecord& now = begin_record(rank, batch, options);
  BatchArrival arrival(state_, now);
  if (part.input) {
    now.first_wanted_layer = 0;  // the rank before waits for the gradient of its output
    now.current = *part.input;
  } else {
    arrival.bring_input(rank, batch, options);
  }
  if (part.has_loss) {
    arrival.bring_target(rank, batch, options);
  }
}

Ticket Replica::announce_tokens(Rank& rank, size_t layer, const StepOptions& options) {
  if (!are_experts_divided(network().layers[layer]) || !runs(layer, options)) {
    return {};
  }
  return DividedExperts(state_, forwards_.now()).announce_tokens(rank, layer);
}

void Replica::forward_layer(Rank& rank, size_t layer, const StepOptions& options) {
  ForwardRecord& now = forwards_.now();
  if (runs(layer, options)) {
    check_batch_norm(network().layers[layer], {now.samples, options.training},
                     {synchronises_statistics_, plan().autocast_of_cuda, rank.world_size()});
    LayerRun& run = now.trace.emplace_back();
    run.layer = static_cast<uint32_t>(layer);
    run.segment = options.training ? network().segment_of(layer) : nullptr;
    run.residual = ResidualBranches(state_, now).residual_of(layer);
    forward_of_run(rank, run, {.training = options.training});
  }
  const CheckpointedSegment* segment = network().segment_of(layer);
  if (options.training && segment != nullptr && segment->last == layer) {
    now.forget_inside(rank, *segment);
  }
}

void Replica::forward_of_run(Rank& rank, LayerRun& run, const LayerTurn& turn) {
  ForwardRecord& now = forwards_.now();
  const Layer& layer = network().layers[run.layer];
  ResidualBranches(state_, now).pass(run);
  run.input = now.current;
  Slice working = CountedMemory(state_, now).begin_layer(rank, run, turn);
  LayerKernels kernels(state_, now);
  Slice output;
  if (plan().numerics && layer.kind != LayerKind::residual_shortcut) {
    output = rank.allocate(Purpose::activation, kernels.output_type_of(run),
                           now.samples * elements_of(layer.output), device());
    now.current = output;
  }
  if (layer.kind == LayerKind::exchange) {
    LayerExchange(state_, now).forward(rank, run, output);
  } else if (is_divided_core(layer)) {
    ContextPass(state_, now).forward(rank, run, turn, output);
  } else if (are_experts_divided(layer)) {
    DividedExperts(state_, now).forward(rank, run, turn, output, routed_);
  } else if (synchronises_statistics_ && turn.training && layer.kind == LayerKind::batch_norm &&
             rank.world_size() > 1) {
    gathered_ = SharedBatchNorm(state_, now).forward(rank, run, turn, output);
  } else {
    kernels.forward(rank, run, turn, output, routed_.begin_counting(rank, now, run.layer, turn));
  }
  forget(rank, working);
  if (turn.again && turn.is_last) {
    // Its first output lives on outside of the segment, and no backward reads this one.
    forget(rank, output);
  } else {
    run.output = output;
  }
}

Ticket Replica::end_forward(Rank& rank, const StepOptions& options) {
  return LossPass(state_, forwards_.now()).forward(rank, options.training);
}

void Replica::end_part(Rank& rank, const StepOptions& options) {
  CountedMemory(state_, forwards_.now()).free_weight_copies(rank, options.training);
}

// Backward

Ticket Replica::backward_of_loss(Rank& rank, const StepOptions& options, After after) {
  return LossPass(state_, forwards_.now()).backward(rank, options, after);
}

Slice Replica::take_input_gradient() {
  ForwardRecord& now = forwards_.now();
  std::erase_if(now.transient,
                [&](const Slice& each) { return each.buffer == now.gradient.buffer; });
  return std::exchange(now.gradient, {});
}

std::vector<size_t> Replica::begin_recomputation(size_t layer) {
  ForwardRecord& now = forwards_.now();
  const LayerRun& first = now.run_of(layer);
  std::vector<size_t> layers;
  if (first.segment == nullptr || first.segment == now.recomputed) {
    return layers;
  }
  now.recomputed = first.segment;
  const std::span<LayerRun> runs = now.runs_of(*first.segment);
  now.current = runs.front().input;
  for (const LayerRun& run : runs) {
    layers.push_back(run.layer);
  }
  return layers;
}

void Replica::recompute(Rank& rank, size_t layer) {
  LayerRun& run = forwards_.now().run_of(layer);
  const bool is_last = &run == &forwards_.now().runs_of(*run.segment).back();
  forward_of_run(rank, run, {.training = true, .again = true, .is_last = is_last});
}

Ticket Replica::backward(Rank& rank, size_t layer, BackwardHalf half) {
  ForwardRecord& now = forwards_.now();
  LayerRun& run = now.run_of(layer);
  const bool has_weights = !parameters_of(layer).empty();
  if (half == BackwardHalf::weights && !has_weights) {
    return {};  // the other half was all of it
  }
  for (const size_t again : begin_recomputation(layer)) {
    recompute(rank, again);
  }
  LayerGradients gradients;
  if (half == BackwardHalf::input) {
    run.own_rare().output_gradient = now.gradient;
    gradients.slices.assign(parameters_of(layer).size(),
                            Slice{no_buffer, plan().parameter_dtype, 0, 0});
  } else {
    gradients = gradients_to_fill(rank, state_, now, layer);
  }
  Slice working = CountedMemory(state_, now).begin_backward(rank, run, gradients.made);
  const Ticket done = backward_of_run(rank, run, gradients.slices, half);
  forget(rank, working);
  if (half == BackwardHalf::input && has_weights) {
    return done;
  }
  run.forget_kept(rank);
  if (run.segment != nullptr && &run != &now.runs_of(*run.segment).back()) {
    forget(rank, run.output);  // the layer behind has had its gradient
  }
  return done;
}

Ticket Replica::backward_of_run(Rank& rank, const LayerRun& run,
                                const std::vector<Slice>& gradients, BackwardHalf half) {
  ForwardRecord& now = forwards_.now();
  const Layer& layer = network().layers[run.layer];
  if (run.rare().statistics.buffer != no_buffer) {
    return SharedBatchNorm(state_, now).backward(rank, run, gradients);
  }
  if (are_experts_divided(layer)) {
    return DividedExperts(state_, now).backward(rank, run, gradients);
  }
  if (layer.kind == LayerKind::residual_shortcut) {
    ResidualBranches(state_, now).turn_to_shortcut(rank, run);
    return {};
  }
  if (layer.kind == LayerKind::exchange) {
    return LayerExchange(state_, now).backward(rank, run);
  }
  if (is_divided_core(layer)) {
    return ContextPass(state_, now).backward(rank, run);
  }
  return LayerKernels(state_, now).backward(rank, run, gradients, half);
}

}  // namespace lockstep
