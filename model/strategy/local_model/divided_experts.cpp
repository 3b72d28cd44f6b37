#include "model/strategy/local_model/divided_experts.hpp"

#include <algorithm>
#include <utility>

#include "model/core/ensure.hpp"
#include "model/network/mixture.hpp"
#include "model/network/output_type.hpp"
#include "model/strategy/local_model/layer_kernels.hpp"
#include "model/strategy/local_model/replica_sites.hpp"
#include "model/strategy/local_model/tensor_sites.hpp"

namespace lockstep {

namespace {

/// Routing and combining, whose price is what they move.
Ticket compute_part(Rank& rank, const KernelCall& call, const ComputeOptions& options) {
  KernelCall priced = call;
  for (const auto& slices : {call.reads, call.writes}) {
    for (const Slice& slice : slices) {
      priced.memory_traffic += slice.bytes();
    }
  }
  return rank.compute(priced, options);
}

}  // namespace

ExpertRun& DividedExperts::experts_of(size_t layer) {
  const auto found = std::ranges::find(now_.expert_runs, layer, &ExpertRun::layer);
  ensure(found != now_.expert_runs.end(), "tokens are announced before they travel");
  return *found;
}

Ticket DividedExperts::announce_tokens(Rank& rank, size_t layer) {
  const Layer& mixed = network().layers[layer];
  const MixtureArguments& mixture = mixture_arguments(network(), layer);
  const int64_t rows = now_.samples * elements_of(mixed.input) / mixture.embed_dim;
  ExpertRun& run = now_.expert_runs.emplace_back();
  run.layer = layer;
  run.choices = transient(rank, mixture.num_experts, DType::int64);
  run.arriving = transient(rank, mixture.num_experts * mixture.tensor_ranks, DType::int64);
  if (state_.division().experts.counting.ranks > 0) {
    run.counted = transient(rank, mixture.num_experts * state_.division().experts.counting.ranks,
                            DType::int64);
  }
  if (plan().numerics) {
    rank.write(run.choices, Values(DType::int64, mixture.num_experts));
    const DType dtype = output_type(mixed, now_.current.dtype, now_.current.dtype, plan().types());
    run.sent = transient(rank, rows * mixture.top_k * mixture.embed_dim, dtype);
    const Slice reads[] = {now_.current, value_of(parameters_of(layer).front())};
    const Slice writes[] = {run.sent, run.choices};
    const double scalars[] = {static_cast<double>(now_.samples), 1, 0,
                              static_cast<double>(MixturePart::route)};
    KernelCall call;
    call.kernel = Kernel::layer_forward;
    call.layer = static_cast<int32_t>(layer);
    call.computes_in = plan().activation_dtype;
    call.reads = reads;
    call.writes = writes;
    call.scalars = scalars;
    compute_part(rank, call, {compute(), {}, site_id(replica_sites::layer_forward)});
  }
  return ExpertRows(state_, now_).send_numbers(rank, run);
}

void DividedExperts::forward(Rank& rank, const LayerRun& run, const LayerTurn& turn,
                             const Slice& output, RoutedTokens& routing) {
  ExpertRun& kept = experts_of(run.layer);
  ExpertRows travel(state_, now_);
  travel.learn_sizes(rank, kept, turn, routing);
  if (turn.again) {  // numbers travel again, and are what they were
    const Ticket numbers = travel.send_numbers(rank, kept);
    if (state_.division().experts.counting.ranks > 0) {  // on a stream of its own
      rank.event({compute(), {numbers}, site_id(replica_sites::recompute)});
    }
  }
  kept.sent = plan().numerics ? kept.sent : travel.memory_of(rank, kept.sent);
  const RowsOnTheWay there = travel.way_of(rank, kept.sent, kept);
  kept.received = there.at_experts;
  const RowsOnTheWay back = travel.way_of(rank, travel.memory_of(rank, kept.returned), kept);
  kept.returned = back.at_home;
  const ExpertRun experts = kept;
  const SiteId site = site_id(turn.again ? replica_sites::recompute : replica_sites::layer_forward);
  travel.bring(rank, experts, there, tensor_sites::dispatch);
  const Slice given = back.at_experts;
  const std::vector<size_t>& parameters = parameters_of(run.layer);
  std::vector<Slice> reads;
  if (plan().numerics) {
    reads = {experts.received, experts.arriving};
  }
  for (size_t i = plan().numerics ? 1 : 0; i < parameters.size(); ++i) {
    reads.push_back(value_of(parameters[i]));
  }
  const KernelPrice cost = LayerKernels(state_, now_).forward_price(run, turn);
  double scalars[] = {static_cast<double>(now_.samples), turn.training ? 1.0 : 0.0, 0,
                      static_cast<double>(MixturePart::compute)};
  KernelCall call;
  call.kernel = Kernel::layer_forward;
  call.layer = static_cast<int32_t>(run.layer);
  call.work = cost.work;
  call.memory_traffic = cost.memory_traffic;
  call.computes_in = plan().activation_dtype;
  call.reads = reads;
  call.writes = std::span(&given, plan().numerics ? 1 : 0);
  call.scalars = scalars;
  rank.compute(call, {compute(), {}, site});
  travel.return_home(rank, experts, back, tensor_sites::combine);
  travel.free_way(rank, there);
  travel.free_way(rank, back);
  if (!plan().numerics) {
    return;
  }
  scalars[3] = static_cast<double>(MixturePart::combine);
  const Slice to_combine[] = {run.input, value_of(parameters.front()), experts.returned};
  call.work = 0;
  call.memory_traffic = {};
  call.reads = to_combine;
  call.writes = {&output, 1};
  compute_part(rank, call, {compute(), {}, site});
}

/// Gradients of rows on their way, and of the router's output.
struct DividedExperts::RowGradients {
  Slice returned;
  Slice given;
  Slice received;
  Slice sent;
  Slice scores;
};

KernelCall DividedExperts::backward_part(const LayerRun& run,
                                         std::span<const double> scalars) const {
  KernelCall call;
  call.kernel = Kernel::layer_backward;
  call.layer = static_cast<int32_t>(run.layer);
  call.computes_in = plan().activation_dtype;
  call.scalars = scalars;
  return call;
}

void DividedExperts::backward_of_combination(Rank& rank, const LayerRun& run,
                                             const RowGradients& rows) {
  const double scalars[] = {static_cast<double>(now_.samples), 1,
                            static_cast<double>(MixturePart::combine)};
  KernelCall call = backward_part(run, scalars);
  const Slice& router = value_of(parameters_of(run.layer).front());
  const Slice reads[] = {now_.gradient, run.input, router, experts_of(run.layer).returned};
  const Slice writes[] = {rows.returned, rows.scores};
  call.reads = reads;
  call.writes = writes;
  compute_part(rank, call, {compute(), {}, site_id(replica_sites::layer_backward)});
}

/// Its price is that of the whole layer.
Ticket DividedExperts::backward_of_computation(Rank& rank, const LayerRun& run,
                                               const RowGradients& rows,
                                               const std::vector<Slice>& gradients) {
  const ExpertRun& experts = experts_of(run.layer);
  const std::vector<size_t>& parameters = parameters_of(run.layer);
  std::vector<Slice> reads;
  std::vector<Slice> writes;
  if (plan().numerics) {
    reads = {rows.given, experts.received, experts.arriving};
    writes = {rows.received};
  }
  for (size_t i = plan().numerics ? 1 : 0; i < parameters.size(); ++i) {
    reads.push_back(value_of(parameters[i]));
    if (gradients[i].buffer != no_buffer) {
      writes.push_back(gradients[i]);
    } else if (plan().numerics) {
      writes.push_back(Slice{rows.returned.buffer, plan().parameter_dtype, 0, 0});
    }
  }
  const KernelPrice cost = LayerKernels(state_, now_).backward_price(run.layer, BackwardHalf::both);
  const double scalars[] = {static_cast<double>(now_.samples), 1,
                            static_cast<double>(MixturePart::compute)};
  KernelCall call = backward_part(run, scalars);
  call.work = cost.work;
  call.memory_traffic = cost.memory_traffic;
  call.reads = reads;
  call.writes = writes;
  return rank.compute(call, {compute(), {}, site_id(replica_sites::layer_backward)});
}

Ticket DividedExperts::backward_of_routing(Rank& rank, const LayerRun& run,
                                           const RowGradients& rows, const Slice& router_gradient) {
  const double scalars[] = {static_cast<double>(now_.samples), 1,
                            static_cast<double>(MixturePart::route)};
  KernelCall call = backward_part(run, scalars);
  const Slice nowhere{rows.returned.buffer, plan().parameter_dtype, 0, 0};
  const bool wanted = now_.wants_input_gradient(run.layer);
  const Slice input =
      wanted ? transient(rank, run.input.elements, run.input.dtype) : Slice(nowhere);
  const Slice& router = value_of(parameters_of(run.layer).front());
  const Slice reads[] = {rows.scores, run.input, router, rows.sent};
  const Slice writes[] = {input, router_gradient.buffer != no_buffer ? router_gradient : nowhere};
  call.reads = reads;
  call.writes = writes;
  if (wanted) {
    now_.gradient = input;
  }
  return compute_part(rank, call, {compute(), {}, site_id(replica_sites::layer_backward)});
}

Ticket DividedExperts::backward(Rank& rank, const LayerRun& run,
                                const std::vector<Slice>& gradients) {
  const ExpertRun experts = experts_of(run.layer);
  ExpertRows travel(state_, now_);
  const DType dtype = experts.sent.dtype;
  RowGradients rows;
  const RowsOnTheWay there = travel.way_of(rank, travel.memory_of(rank, experts.returned), experts);
  const RowsOnTheWay back = travel.way_of(rank, travel.memory_of(rank, experts.sent), experts);
  rows.returned = there.at_home;
  rows.given = there.at_experts;
  rows.received = back.at_experts;
  rows.sent = back.at_home;
  if (plan().numerics) {
    const MixtureArguments& mixture = mixture_arguments(network(), run.layer);
    rows.scores =
        transient(rank, run.input.elements / mixture.embed_dim * mixture.num_experts, dtype);
    backward_of_combination(rank, run, rows);
  }
  travel.bring(rank, experts, there, tensor_sites::dispatch_gradient);
  backward_of_computation(rank, run, rows, gradients);
  const Ticket done = travel.return_home(rank, experts, back, tensor_sites::combine_gradient);
  travel.free_way(rank, there);
  travel.free_way(rank, back);
  return plan().numerics ? backward_of_routing(rank, run, rows, gradients.front()) : done;
}

}  // namespace lockstep
