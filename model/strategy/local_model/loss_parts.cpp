#include "model/strategy/local_model/loss_parts.hpp"

#include "model/network/loss_part.hpp"
#include "model/strategy/local_model/counted_memory.hpp"
#include "model/strategy/local_model/replica_sites.hpp"
#include "model/strategy/local_model/tensor_sites.hpp"

namespace lockstep {

bool LossParts::has(const Network& network) {
  const auto* loss = std::get_if<LossArguments>(&network.loss.arguments);
  return loss != nullptr && loss->parts > 1;
}

double LossParts::first_class() const {
  return static_cast<double>(network().loss.input.back() * state_.division().layers.index);
}

/// One number for each row: all ranks get what they are together.
Ticket LossParts::agree(Rank& rank, const Slice& of_rows, Reduction reduction) {
  const TensorRanks& ranks = state_.division().layers;
  const SiteId site = site_id(tensor_sites::loss);
  const Ticket ready = rank.event({compute(), {}, site});
  const Ticket done = rank.all_reduce(ranks.group, of_rows, reduction, {ranks.on, {ready}, site});
  return rank.event({compute(), {done}, site});
}

// Megatron-LM, tensor_parallel/cross_entropy.py, and torch/distributed/tensor/parallel/loss.py: the
// greatest score, then what the targets' owners have, then the sums, or the last two the other way
// round.
Ticket LossParts::forward(Rank& rank) {
  const Layer& loss = network().loss;
  const SiteId site = site_id(replica_sites::loss_forward);
  const DType dtype = now_.current.dtype == DType::fp64 ? DType::fp64 : DType::fp32;
  const int64_t rows = now_.target.elements;
  const auto of_rows = [&](Purpose purpose) {
    return rank.allocate(purpose, dtype, rows, device());
  };
  forget(rank, now_.loss.greatest_scores);
  forget(rank, now_.loss.score_sums);
  now_.loss.greatest_scores = of_rows(Purpose::activation);
  now_.loss.score_sums = of_rows(Purpose::activation);
  const Slice target_scores = of_rows(Purpose::workspace);
  const Bytes traffic = moved_bytes(loss, Pass::forward, now_.samples, plan().activation_dtype);
  const auto run = [&](LossPart part, const std::vector<Slice>& reads,
                       const std::vector<Slice>& writes, Bytes moved) {
    const double scalars[] = {static_cast<double>(part), first_class()};
    KernelCall call;
    call.kernel = Kernel::loss_forward;
    call.layer = static_cast<int32_t>(now_.last_module);
    call.computes_in = plan().activation_dtype;
    call.memory_traffic = moved;
    call.reads = plan().numerics ? std::span<const Slice>(reads) : std::span<const Slice>();
    call.writes = writes;
    call.scalars = scalars;
    return rank.compute(call, {compute(), {}, site});
  };
  run(LossPart::greatest, {now_.current}, {now_.loss.greatest_scores}, traffic / 2);
  agree(rank, now_.loss.greatest_scores, Reduction::max);
  run(LossPart::terms, {now_.current, now_.target, now_.loss.greatest_scores},
      {target_scores, now_.loss.score_sums}, traffic);
  agree(rank, target_scores, Reduction::sum);
  agree(rank, now_.loss.score_sums, Reduction::sum);
  const Ticket done = run(LossPart::loss, {target_scores, now_.loss.score_sums, now_.target},
                          {state_.loss()}, target_scores.bytes() * 2);
  rank.release(target_scores);
  return done;
}

Ticket LossParts::backward(Rank& rank, double factor, After after) {
  const Layer& loss = network().loss;
  const Slice reads[] = {now_.current, now_.target, now_.loss.greatest_scores,
                         now_.loss.score_sums};
  const double scalars[] = {factor, first_class()};
  KernelCall call;
  call.layer = static_cast<int32_t>(now_.last_module);
  call.kernel = Kernel::loss_backward;
  call.computes_in = plan().activation_dtype;
  call.memory_traffic =
      moved_bytes(loss, Pass::input_gradient, now_.samples, plan().activation_dtype);
  call.scalars = scalars;
  if (plan().numerics) {
    now_.gradient = transient(rank, now_.current.elements, now_.current.dtype);
    call.reads = reads;
    call.writes = {&now_.gradient, 1};
  }
  Slice working = CountedMemory(state_, now_).begin_backward_of_loss(rank);
  const Ticket done = rank.compute(call, {compute(), after, site_id(replica_sites::loss_backward)});
  forget(rank, working);
  forget(rank, now_.loss.kept);
  return done;
}

}  // namespace lockstep
