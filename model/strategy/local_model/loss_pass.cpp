#include "model/strategy/local_model/loss_pass.hpp"

#include "model/core/ensure.hpp"
#include "model/strategy/local_model/counted_memory.hpp"
#include "model/strategy/local_model/loss_parts.hpp"
#include "model/strategy/local_model/replica_sites.hpp"

namespace lockstep {

SampleComparison::Call LossPass::comparison_call() const {
  return {&plan(),     &loss(),      static_cast<int32_t>(now_.last_module),
          device(),    compute(),    now_.current,
          now_.target, now_.samples, now_.first_wanted_layer < network().layers.size()};
}

Ticket LossPass::submit_forward(Rank& rank) {
  const Slice reads[] = {now_.current, now_.target};
  KernelCall call;
  call.layer = static_cast<int32_t>(now_.last_module);
  call.kernel = Kernel::loss_forward;
  call.work = flops_of(loss(), Pass::forward, now_.samples).count();
  call.computes_in = plan().activation_dtype;
  call.memory_traffic = moved_bytes(loss(), Pass::forward, now_.samples, plan().activation_dtype);
  call.reads = plan().numerics ? std::span<const Slice>(reads) : std::span<const Slice>();
  call.writes = {&state_.loss(), 1};
  return rank.compute(call, {compute(), {}, site_id(replica_sites::loss_forward)});
}

Ticket LossPass::forward(Rank& rank, bool training) {
  CountedMemory memory(state_, now_);
  Slice working = memory.begin_loss(rank, training);
  const Ticket done =
      LossParts::has(network()) ? LossParts(state_, now_).forward(rank)
      : compares_samples(loss().kind)
          ? now_.loss.comparison.forward(rank, comparison_call(), training, state_.loss())
          : submit_forward(rank);
  forget(rank, working);
  memory.free_weight_copies(rank, training);
  return done;
}

Ticket LossPass::backward_of_own_loss(Rank& rank, const StepOptions& options, After after) {
  if (plan().numerics) {
    ensure(std::ssize(options.output_gradient) == now_.current.elements,
           "a gradient of each element of the output");
    now_.gradient = transient(rank, now_.current.elements, plan().activation_dtype);
    Values values(plan().activation_dtype, now_.current.elements);
    for (int64_t i = 0; i < values.size(); ++i) {
      values.set(i, options.loss_factor * options.output_gradient[static_cast<size_t>(i)]);
    }
    rank.write(now_.gradient, values);
  }
  return rank.event({compute(), after, site_id(replica_sites::loss_backward)});
}

Ticket LossPass::submit_backward(Rank& rank, double factor, After after) {
  const Slice reads[] = {now_.current, now_.target};
  KernelCall call;
  call.layer = static_cast<int32_t>(now_.last_module);
  call.kernel = Kernel::loss_backward;
  call.work = flops_of(loss(), Pass::input_gradient, now_.samples).count();
  call.computes_in = plan().activation_dtype;
  call.memory_traffic =
      moved_bytes(loss(), Pass::input_gradient, now_.samples, plan().activation_dtype);
  call.scalars = {&factor, 1};
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

Ticket LossPass::backward(Rank& rank, const StepOptions& options, After after) {
  now_.loss.factor = options.loss_factor;
  if (!options.output_gradient.empty()) {
    forget(rank, now_.loss.kept);
    return backward_of_own_loss(rank, options, after);
  }
  if (LossParts::has(network())) {
    return LossParts(state_, now_).backward(rank, options.loss_factor, after);
  }
  if (!compares_samples(loss().kind)) {
    return submit_backward(rank, options.loss_factor, after);
  }
  if (plan().numerics) {
    now_.gradient = transient(rank, now_.current.elements, now_.current.dtype);
  }
  return now_.loss.comparison.backward(rank, comparison_call(),
                                       {now_.gradient, options.loss_factor, after});
}

}  // namespace lockstep
