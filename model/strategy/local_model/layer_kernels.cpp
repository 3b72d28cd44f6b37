#include "model/strategy/local_model/layer_kernels.hpp"

#include <algorithm>

#include "model/network/output_type.hpp"
#include "model/strategy/local_model/replica_sites.hpp"
#include "model/strategy/local_model/residual_branches.hpp"
#include "model/strategy/local_model/wanted_gradients.hpp"

namespace lockstep {

DType LayerKernels::output_type_of(const LayerRun& run) const {
  return output_type(layer_of(run), run.input.dtype,
                     run.residual ? now_.residuals[*run.residual].branch().dtype : run.input.dtype,
                     plan().types());
}

// FairScale keeps batch norm from tracking its statistics in the first of two forwards.
bool LayerKernels::updates_buffers(const Layer& layer, const LayerRun& run, const LayerTurn& turn) {
  if (layer.kind == LayerKind::buffer) {
    return false;  // only the program changes what it has registered
  }
  return run.segment == nullptr || turn.again ||
         run.segment->recomputation != Recomputation::fairscale;
}

KernelPrice LayerKernels::forward_price(const LayerRun& run, const LayerTurn& turn) const {
  const Layer& layer = layer_of(run);
  if (turn.again && run.segment->recomputation == Recomputation::attention_core) {
    const Work& core = layer.attention_core->work;
    return {(core.flops * now_.samples).count(),
            Bytes(size_of(plan().activation_dtype)) * core.elements * now_.samples};
  }
  const auto* price = std::get_if<CostArguments>(&layer.arguments);
  return {price != nullptr ? (price->forward * now_.samples).count()
                           : flops_of(layer, Pass::forward, now_.samples).count(),
          moved_bytes(layer, Pass::forward, now_.samples, plan().activation_dtype)};
}

void LayerKernels::forward(Rank& rank, const LayerRun& run, const LayerTurn& turn,
                           const Slice& output, const std::optional<Slice>& choices) {
  const Layer& layer = layer_of(run);
  const bool runs = layer.work_of(Pass::forward).runs || plan().numerics;
  if (!runs || layer.kind == LayerKind::residual_shortcut) {
    return;
  }
  std::vector<Slice> reads;
  std::vector<Slice> writes;
  if (plan().numerics) {
    reads.push_back(run.input);
    writes.push_back(output);
  }
  for (const size_t parameter : parameters_of(run.layer)) {
    reads.push_back(value_of(parameter));
  }
  if (plan().numerics && (joins_branches(layer.kind) || layer.aside)) {
    reads.push_back(now_.residuals[*run.residual].branch());
  }
  if (choices) {
    writes.push_back(*choices);
  }
  if (updates_buffers(layer, run, turn)) {
    for (const size_t buffer : state_.buffers_of(run.layer)) {
      writes.push_back(state_.buffers()[buffer].value);
    }
  }
  const bool keeps_nothing = (run.segment != nullptr && !turn.again) ||
                             (turn.training && run.layer < now_.first_wanted_layer);
  const std::optional<double> place = state_.division().place_of_part(layer);
  const double scalars[] = {static_cast<double>(now_.samples), turn.training ? 1.0 : 0.0,
                            keeps_nothing ? 1.0 : 0.0, place.value_or(0)};
  const KernelPrice cost = forward_price(run, turn);
  KernelCall call;
  call.kernel = std::holds_alternative<CostArguments>(layer.arguments) ? Kernel::timed
                                                                       : Kernel::layer_forward;
  call.layer = static_cast<int32_t>(run.layer);
  call.work = cost.work;
  call.computes_in = plan().activation_dtype;
  call.memory_traffic = cost.memory_traffic;
  call.reads = reads;
  call.writes = writes;
  call.scalars = std::span(scalars).first(place ? 4 : keeps_nothing ? 3 : 2);
  const std::string_view site =
      turn.again ? replica_sites::recompute : replica_sites::layer_forward;
  rank.compute(call, {compute(), {}, site_id(site)});
}

// The network knows what never needs a gradient; its modules know what this forward leaves out.
KernelPrice LayerKernels::backward_price(size_t index, BackwardHalf half) const {
  const Layer& layer = network().layers[index];
  const bool changes = !network().modules.empty();
  const bool input =
      half != BackwardHalf::weights && (!changes || now_.wants_input_gradient(index));
  const bool weight =
      half != BackwardHalf::input &&
      (!changes ||
       std::any_of(parameters_of(index).begin(), parameters_of(index).end(), [&](size_t each) {
         return wants_gradient(state_, now_, state_.parameters()[each]);
       }));
  KernelPrice cost;
  for (const auto& [pass, counts] :
       {std::pair(Pass::input_gradient, input), std::pair(Pass::weight_gradient, weight)}) {
    if (counts) {
      cost.work += flops_of(layer, pass, now_.samples).count();
      cost.memory_traffic += moved_bytes(layer, pass, now_.samples, plan().activation_dtype);
    }
  }
  return cost;
}

Ticket LayerKernels::backward(Rank& rank, const LayerRun& run, const std::vector<Slice>& gradients,
                              BackwardHalf half) {
  const Layer& layer = layer_of(run);
  std::vector<Slice> reads;
  std::vector<Slice> writes;
  if (plan().numerics) {
    const bool is_late = half == BackwardHalf::weights;
    reads = {is_late ? run.rare().output_gradient : now_.gradient, run.input};
    const bool wanted = !is_late && now_.wants_input_gradient(run.layer);
    writes.push_back(wanted ? transient(rank, run.input.elements, run.input.dtype)
                            : Slice{reads.front().buffer, reads.front().dtype, 0, 0});
  }
  for (const size_t parameter : parameters_of(run.layer)) {
    reads.push_back(value_of(parameter));
  }
  for (const Slice& gradient : gradients) {
    if (gradient.buffer != no_buffer) {
      writes.push_back(gradient);
    } else if (plan().numerics) {
      writes.push_back(Slice{reads.front().buffer, reads.front().dtype, 0, 0});
    }
  }
  if (plan().numerics && run.residual) {
    ResidualBranches(state_, now_).meet(rank, run, reads, writes);
    if (half == BackwardHalf::weights && layer.aside) {
      writes.back() = Slice{reads.front().buffer, reads.front().dtype, 0, 0};  // it has had its own
    }
  }
  now_.gradient = plan().numerics && writes.front().elements > 0 ? writes.front() : now_.gradient;
  const auto* price = std::get_if<CostArguments>(&layer.arguments);
  const KernelPrice cost = backward_price(run.layer, half);
  const std::optional<double> second = layer.kind == LayerKind::mixture_of_experts
                                           ? now_.loss.factor
                                           : state_.division().place_of_part(layer);
  const double scalars[] = {static_cast<double>(now_.samples), second.value_or(0)};
  KernelCall call;
  call.kernel = price != nullptr ? Kernel::timed : Kernel::layer_backward;
  call.layer = static_cast<int32_t>(run.layer);
  const int64_t parts = half == BackwardHalf::both ? 1 : 2;  // a price says nothing of its halves
  call.work = price != nullptr ? (price->backward * now_.samples).count() / parts : cost.work;
  call.computes_in = plan().activation_dtype;
  call.memory_traffic = cost.memory_traffic;
  call.reads = reads;
  call.writes = writes;
  call.scalars = std::span(scalars).first(second ? 2 : 1);
  if (!plan().numerics && call.work == 0 && call.memory_traffic == Bytes{}) {
    return {};
  }
  return rank.compute(call, {compute(), {}, site_id(replica_sites::layer_backward)});
}

}  // namespace lockstep
