#include "model/strategy/optimizer.hpp"

namespace lockstep {

int state_tensors(const OptimizerPlan& plan) {
  if (plan.kind == OptimizerKind::sgd) {
    return plan.momentum != 0 ? 1 : 0;
  }
  return 2;
}

namespace {

Ticket step_one(Rank& rank, const OptimizerPlan& plan, OptimizedTensor& tensor,
                const ComputeOptions& options) {
  std::vector<Slice> writes{tensor.value};
  writes.insert(writes.end(), tensor.state.begin(), tensor.state.end());
  KernelCall call;
  call.reads = {&tensor.gradient, 1};
  call.writes = writes;
  call.memory_traffic = tensor.value.bytes() * (3 + 2 * static_cast<int64_t>(tensor.state.size()));
  const auto step = static_cast<double>(tensor.steps);
  if (plan.kind == OptimizerKind::sgd) {
    const double scalars[] = {plan.lr, plan.momentum, plan.weight_decay, step};
    call.kernel = Kernel::sgd_step;
    call.scalars = scalars;
    return rank.compute(call, options);
  }
  const double scalars[] = {plan.lr,
                            plan.beta1,
                            plan.beta2,
                            plan.eps,
                            plan.weight_decay,
                            step,
                            plan.kind == OptimizerKind::adamw ? 1.0 : 0.0};
  call.kernel = Kernel::adam_step;
  call.scalars = scalars;
  return rank.compute(call, options);
}

}  // namespace

Ticket optimizer_step(Rank& rank, const OptimizerPlan& plan, bool numerics,
                      std::vector<OptimizedTensor*> tensors, SiteId site, Ticket after) {
  ComputeOptions options{compute_stream, {after}, site};
  Ticket last = after;
  Bytes moved{};
  std::vector<Slice> gradients;
  std::vector<Slice> updated;
  for (OptimizedTensor* tensor : tensors) {
    if (tensor->gradient.buffer == no_buffer) {
      continue;
    }
    ++tensor->steps;
    while (static_cast<int>(tensor->state.size()) < state_tensors(plan)) {
      tensor->state.push_back(
          rank.allocate(Purpose::optimizer_state, tensor->value.dtype, tensor->value.elements));
    }
    moved += tensor->value.bytes() * (3 + 2 * static_cast<int64_t>(tensor->state.size()));
    gradients.push_back(tensor->gradient);
    updated.push_back(tensor->value);
    updated.insert(updated.end(), tensor->state.begin(), tensor->state.end());
    if (numerics) {
      last = step_one(rank, plan, *tensor, options);
    }
  }
  if (!numerics && moved > Bytes{}) {
    KernelCall call;
    call.kernel = plan.kind == OptimizerKind::sgd ? Kernel::sgd_step : Kernel::adam_step;
    call.memory_traffic = moved;
    call.reads = gradients;
    call.writes = updated;
    last = rank.compute(call, options);
  }
  return last;
}

}  // namespace lockstep
