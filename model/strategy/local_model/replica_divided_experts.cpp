// Mixtures of experts that ranks divide: tokens travel to their experts and back by all_to_all, as
// ExpertParallel of torchtitan lets them.
#include <algorithm>
#include <numeric>
#include <utility>

#include "model/core/ensure.hpp"
#include "model/network/mixture.hpp"
#include "model/network/output_type.hpp"
#include "model/strategy/local_model/replica.hpp"
#include "model/strategy/local_model/replica_sites.hpp"
#include "model/strategy/local_model/tensor_sites.hpp"

namespace lockstep {

namespace {

const MixtureArguments& mixture_of(const Network& network, size_t layer) {
  return std::get<MixtureArguments>(network.layers[layer].arguments);
}

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

ExpertRun& Replica::experts_of(size_t layer) {
  const auto found = std::ranges::find(now_.expert_runs, layer, &ExpertRun::layer);
  ensure(found != now_.expert_runs.end(), "tokens are announced before they travel");
  return *found;
}

Ticket Replica::announce_tokens(Rank& rank, size_t layer, const StepOptions& options) {
  const Layer& mixed = network().layers[layer];
  if (!are_experts_divided(mixed) || !runs(layer, options)) {
    return {};
  }
  const MixtureArguments& mixture = mixture_of(network(), layer);
  const int64_t rows = now_.samples * elements_of(mixed.input) / mixture.embed_dim;
  const SiteId site = site_id(tensor_sites::announce);
  ExpertRun& run = now_.expert_runs.emplace_back();
  run.layer = layer;
  run.choices = transient(rank, mixture.num_experts, DType::int64);
  run.arriving = transient(rank, mixture.num_experts, DType::int64);
  if (plan_->numerics) {
    rank.write(run.choices, Values(DType::int64, mixture.num_experts));
    const DType dtype = output_type(mixed, now_.current.dtype, now_.current.dtype, plan_->types());
    run.sent = transient(rank, rows * mixture.top_k * mixture.embed_dim, dtype);
    const Slice reads[] = {now_.current, parameters_[parameters_of_[layer].front()].tensor.value};
    const Slice writes[] = {run.sent, run.choices};
    const double scalars[] = {static_cast<double>(now_.samples), 1, 0,
                              static_cast<double>(MixturePart::route)};
    KernelCall call;
    call.kernel = Kernel::layer_forward;
    call.layer = static_cast<int32_t>(layer);
    call.computes_in = plan_->activation_dtype;
    call.reads = reads;
    call.writes = writes;
    call.scalars = scalars;
    compute_part(rank, call, {compute(), {}, site_id(replica_sites::layer_forward)});
  }
  const Ticket ready = rank.event({compute(), {}, site});
  return rank.all_to_all(tensor_ranks_.group, run.choices, run.arriving, {},
                         {tensor_ranks_.on, {ready}, site});
}

/// What the host has read: who sends how much to whom.
void Replica::learn_sizes(Rank& rank, ExpertRun& run, const Turn& turn) {
  if (std::exchange(run.is_sized, true)) {
    return;
  }
  const MixtureArguments& mixture = mixture_of(network(), run.layer);
  const Layer& mixed = network().layers[run.layer];
  const DType dtype = plan_->numerics ? run.sent.dtype : plan_->activation_dtype;
  const int64_t sent = now_.samples * elements_of(mixed.input) / mixture.embed_dim * mixture.top_k;
  int64_t received = sent;
  if (plan_->numerics) {
    for (const Slice& counted : {run.choices, run.arriving}) {
      const Values numbers = rank.read(counted);
      if (turn.training && counted == run.choices) {
        note_load(run.layer, numbers);
      }
      for (int32_t other = 0; !numbers.empty() && other < mixture.ranks; ++other) {
        int64_t rows = 0;
        for (int64_t expert = 0; expert < mixture.own_experts(); ++expert) {
          rows += numbers.integer(other * mixture.own_experts() + expert);
        }
        run.splits.push_back(rows * mixture.embed_dim);
      }
    }
    if (!run.splits.empty()) {
      received = std::accumulate(run.splits.begin() + mixture.ranks, run.splits.end(), int64_t{0}) /
                 mixture.embed_dim;
    }
  }
  run.sent = Slice{run.sent.buffer, dtype, 0, sent * mixture.embed_dim};
  run.received = Slice{no_buffer, dtype, 0, received * mixture.embed_dim};
  run.returned = Slice{no_buffer, dtype, 0, run.sent.elements};
}

/// Who gets nothing has memory for a number that nobody fills. Without values it is there while the
/// rows travel; what autograd keeps of them is among what the layer saves.
Slice Replica::memory_of_rows(Rank& rank, const Slice& like) {
  const int64_t elements = std::max<int64_t>(1, like.elements);
  const Slice memory = plan_->numerics
                           ? transient(rank, elements, like.dtype)
                           : rank.allocate(Purpose::communication, like.dtype, elements, device_);
  return memory.part(0, like.elements);
}

void Replica::free_rows(Rank& rank, std::initializer_list<Slice> rows) {
  for (const Slice& each : rows) {
    if (!plan_->numerics) {
      rank.release(each);
    }
  }
}

Ticket Replica::send_rows(Rank& rank, const ExpertRun& run, const Slice& from, const Slice& to,
                          bool to_experts, std::string_view site) {
  std::vector<int64_t> splits = run.splits;
  if (!to_experts) {
    std::ranges::rotate(splits, splits.begin() + std::ssize(splits) / 2);
  }
  const Ticket ready = rank.event({compute(), {}, site_id(site)});
  const Ticket done = rank.all_to_all(tensor_ranks_.group, from, to, splits,
                                      {tensor_ranks_.on, {ready}, site_id(site)});
  return rank.event({compute(), {done}, site_id(site)});
}

void Replica::forward_of_experts(Rank& rank, const LayerRun& run, const Turn& turn,
                                 const Slice& output) {
  ExpertRun& kept = experts_of(run.layer);
  learn_sizes(rank, kept, turn);
  if (turn.again) {  // numbers travel again, and are what they were
    const SiteId again = site_id(tensor_sites::announce);
    const Ticket ready = rank.event({compute(), {}, again});
    rank.all_to_all(tensor_ranks_.group, kept.choices, kept.arriving, {},
                    {tensor_ranks_.on, {ready}, again});
  }
  kept.sent = plan_->numerics ? kept.sent : memory_of_rows(rank, kept.sent);
  kept.received = memory_of_rows(rank, kept.received);
  kept.returned = memory_of_rows(rank, kept.returned);
  const ExpertRun experts = kept;
  const SiteId site = site_id(turn.again ? replica_sites::recompute : replica_sites::layer_forward);
  send_rows(rank, experts, experts.sent, experts.received, true, tensor_sites::dispatch);
  const Slice given = memory_of_rows(rank, experts.received);
  const std::vector<size_t>& parameters = parameters_of_[run.layer];
  std::vector<Slice> reads;
  if (plan_->numerics) {
    reads = {experts.received, experts.arriving};
  }
  for (size_t i = plan_->numerics ? 1 : 0; i < parameters.size(); ++i) {
    reads.push_back(parameters_[parameters[i]].tensor.value);
  }
  const Cost cost = cost_of(run, turn);
  double scalars[] = {static_cast<double>(now_.samples), turn.training ? 1.0 : 0.0, 0,
                      static_cast<double>(MixturePart::compute)};
  KernelCall call;
  call.kernel = Kernel::layer_forward;
  call.layer = static_cast<int32_t>(run.layer);
  call.work = cost.work;
  call.memory_traffic = cost.memory_traffic;
  call.computes_in = plan_->activation_dtype;
  call.reads = reads;
  call.writes = std::span(&given, plan_->numerics ? 1 : 0);
  call.scalars = scalars;
  rank.compute(call, {compute(), {}, site});
  send_rows(rank, experts, given, experts.returned, false, tensor_sites::combine);
  free_rows(rank, {experts.sent, experts.received, given, experts.returned});
  if (!plan_->numerics) {
    return;
  }
  scalars[3] = static_cast<double>(MixturePart::combine);
  const Slice to_combine[] = {run.input, parameters_[parameters.front()].tensor.value,
                              experts.returned};
  call.work = 0;
  call.memory_traffic = {};
  call.reads = to_combine;
  call.writes = {&output, 1};
  compute_part(rank, call, {compute(), {}, site});
}

/// Gradients of rows on their way, and of the router's output.
struct Replica::RowGradients {
  Slice returned;
  Slice given;
  Slice received;
  Slice sent;
  Slice scores;
};

KernelCall Replica::backward_part(const LayerRun& run, std::span<const double> scalars) const {
  KernelCall call;
  call.kernel = Kernel::layer_backward;
  call.layer = static_cast<int32_t>(run.layer);
  call.computes_in = plan_->activation_dtype;
  call.scalars = scalars;
  return call;
}

void Replica::backward_of_combination(Rank& rank, const LayerRun& run, const RowGradients& rows) {
  const double scalars[] = {static_cast<double>(now_.samples), 1,
                            static_cast<double>(MixturePart::combine)};
  KernelCall call = backward_part(run, scalars);
  const Slice& router = parameters_[parameters_of_[run.layer].front()].tensor.value;
  const Slice reads[] = {now_.gradient, run.input, router, experts_of(run.layer).returned};
  const Slice writes[] = {rows.returned, rows.scores};
  call.reads = reads;
  call.writes = writes;
  compute_part(rank, call, {compute(), {}, site_id(replica_sites::layer_backward)});
}

/// Its price is that of the whole layer.
Ticket Replica::backward_of_computation(Rank& rank, const LayerRun& run, const RowGradients& rows,
                                        const std::vector<Slice>& gradients) {
  const ExpertRun& experts = experts_of(run.layer);
  const std::vector<size_t>& parameters = parameters_of_[run.layer];
  std::vector<Slice> reads;
  std::vector<Slice> writes;
  if (plan_->numerics) {
    reads = {rows.given, experts.received, experts.arriving};
    writes = {rows.received};
  }
  for (size_t i = plan_->numerics ? 1 : 0; i < parameters.size(); ++i) {
    reads.push_back(parameters_[parameters[i]].tensor.value);
    if (gradients[i].buffer != no_buffer) {
      writes.push_back(gradients[i]);
    } else if (plan_->numerics) {
      writes.push_back(Slice{rows.returned.buffer, plan_->parameter_dtype, 0, 0});
    }
  }
  const Cost cost = backward_cost(run.layer, BackwardHalf::both);
  const double scalars[] = {static_cast<double>(now_.samples), 1,
                            static_cast<double>(MixturePart::compute)};
  KernelCall call = backward_part(run, scalars);
  call.work = cost.work;
  call.memory_traffic = cost.memory_traffic;
  call.reads = reads;
  call.writes = writes;
  return rank.compute(call, {compute(), {}, site_id(replica_sites::layer_backward)});
}

Ticket Replica::backward_of_routing(Rank& rank, const LayerRun& run, const RowGradients& rows,
                                    const Slice& router_gradient) {
  const double scalars[] = {static_cast<double>(now_.samples), 1,
                            static_cast<double>(MixturePart::route)};
  KernelCall call = backward_part(run, scalars);
  const Slice nowhere{rows.returned.buffer, plan_->parameter_dtype, 0, 0};
  const bool wanted = wants_input_gradient(run.layer);
  const Slice input =
      wanted ? transient(rank, run.input.elements, run.input.dtype) : Slice(nowhere);
  const Slice& router = parameters_[parameters_of_[run.layer].front()].tensor.value;
  const Slice reads[] = {rows.scores, run.input, router, rows.sent};
  const Slice writes[] = {input, router_gradient.buffer != no_buffer ? router_gradient : nowhere};
  call.reads = reads;
  call.writes = writes;
  if (wanted) {
    now_.gradient = input;
  }
  return compute_part(rank, call, {compute(), {}, site_id(replica_sites::layer_backward)});
}

Ticket Replica::backward_of_experts(Rank& rank, const LayerRun& run,
                                    const std::vector<Slice>& gradients) {
  const ExpertRun experts = experts_of(run.layer);
  const DType dtype = experts.sent.dtype;
  RowGradients rows;
  rows.returned = memory_of_rows(rank, experts.returned);
  rows.given = memory_of_rows(rank, experts.received);
  rows.received = memory_of_rows(rank, experts.received);
  rows.sent = memory_of_rows(rank, experts.sent);
  if (plan_->numerics) {
    const MixtureArguments& mixture = mixture_of(network(), run.layer);
    rows.scores =
        transient(rank, run.input.elements / mixture.embed_dim * mixture.num_experts, dtype);
    backward_of_combination(rank, run, rows);
  }
  send_rows(rank, experts, rows.returned, rows.given, true, tensor_sites::dispatch_gradient);
  backward_of_computation(rank, run, rows, gradients);
  const Ticket back =
      send_rows(rank, experts, rows.received, rows.sent, false, tensor_sites::combine_gradient);
  free_rows(rank, {rows.returned, rows.given, rows.received, rows.sent});
  return plan_->numerics ? backward_of_routing(rank, run, rows, gradients.front()) : back;
}

}  // namespace lockstep
