#include "model/strategy/local_model/optimizer.hpp"

#include <algorithm>

namespace lockstep {

OptimizerPlan scheduled(OptimizerPlan plan, const UpdateOptions& options) {
  plan.lr = options.learning_rate.value_or(plan.lr);
  if (options.momentum) {
    (has_betas(plan) ? plan.beta1 : plan.momentum) = options.momentum->first;
    plan.beta2 = options.momentum->second_beta.value_or(plan.beta2);
  }
  return plan;
}

bool has_betas(const OptimizerPlan& plan) { return plan.kind != OptimizerKind::sgd; }

double first_momentum(const OptimizerPlan& plan) {
  return has_betas(plan) ? plan.beta1 : plan.momentum;
}

int state_tensors(const OptimizerPlan& plan) {
  if (plan.kind == OptimizerKind::sgd) {
    return plan.momentum != 0 ? 1 : 0;
  }
  return 2;
}

// Autocast is that of the device that computes.
OptimizerKernels kernels_of(const TrainingPlan& plan) {
  return plan.numerics           ? OptimizerKernels::of_values
         : plan.autocast_of_cuda ? OptimizerKernels::for_all_tensors
                                 : OptimizerKernels::for_each_tensor;
}

namespace {

Bytes moved_by_update_of(const OptimizedTensor& tensor) {
  return tensor.value.bytes() * (3 + 2 * static_cast<int64_t>(tensor.state.size()));
}

Ticket step_one(Rank& rank, const OptimizerPlan& plan, OptimizedTensor& tensor,
                const ComputeOptions& options) {
  std::vector<Slice> writes{tensor.value};
  writes.insert(writes.end(), tensor.state.begin(), tensor.state.end());
  KernelCall call;
  call.reads = {&tensor.gradient, 1};
  call.writes = writes;
  call.memory_traffic = moved_by_update_of(tensor);
  const auto step = static_cast<double>(tensor.steps);
  if (plan.kind == OptimizerKind::sgd) {
    const double scalars[] = {plan.lr, plan.momentum, plan.weight_decay, step};
    call.kernel = Kernel::sgd_step;
    call.scalars = scalars;
    return rank.compute(call, options);
  }
  if (plan.kind == OptimizerKind::qadam) {
    const double scalars[] = {plan.lr,  plan.beta1, plan.beta2,
                              plan.eps, step,       tensor.steps < plan.warmup_steps ? 1.0 : 0.0};
    call.kernel = Kernel::qadam_step;
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

// Computes no values.
Ticket step_all(Rank& rank, const OptimizerPlan& plan, const std::vector<OptimizedTensor*>& tensors,
                const ComputeOptions& options) {
  std::vector<Slice> reads;
  std::vector<Slice> writes;
  KernelCall call;
  call.kernel = plan.kind == OptimizerKind::sgd     ? Kernel::sgd_step
                : plan.kind == OptimizerKind::qadam ? Kernel::qadam_step
                                                    : Kernel::adam_step;
  for (const OptimizedTensor* tensor : tensors) {
    call.memory_traffic += moved_by_update_of(*tensor);
    reads.push_back(tensor->gradient);
    writes.push_back(tensor->value);
    writes.insert(writes.end(), tensor->state.begin(), tensor->state.end());
  }
  call.reads = reads;
  call.writes = writes;
  return rank.compute(call, options);
}

}  // namespace

// torch/optim/sgd.py and adam.py. Weight decay that is no part of AdamW adds the decayed weights to
// the gradients, out of place. Adam divides by the square root of the second moment plus eps: the
// root is a tensor, and where tensors are updated one by one its quotient is another. The foreach
// implementation drops the decayed gradients before it makes the roots.
Bytes optimizer_temporaries(const OptimizerPlan& plan, OptimizerKernels kernels,
                            const std::vector<Slice>& values) {
  if (plan.is_on_host || plan.is_fused) {
    return {};  // they compute in place
  }
  const bool is_qadam = plan.kind == OptimizerKind::qadam;  // a loop over tensors, without decay
  const bool one_by_one = kernels == OptimizerKernels::for_each_tensor || is_qadam;
  const bool is_sgd = plan.kind == OptimizerKind::sgd;
  const bool decays = plan.kind != OptimizerKind::adamw && !is_qadam && plan.weight_decay != 0;
  const int64_t roots = is_sgd ? 0 : one_by_one ? 2 : 1;
  const int64_t decayed = decays ? 1 : 0;
  const int64_t tensors = one_by_one ? roots + decayed : std::max(roots, decayed);
  Bytes bytes{};
  for (const Slice& value : values) {
    const Bytes here = value.bytes() * tensors;
    bytes = one_by_one ? std::max(bytes, here) : bytes + here;
  }
  return bytes;
}

Ticket optimizer_step(Rank& rank, const OptimizerPlan& plan, OptimizerKernels kernels,
                      const std::vector<OptimizedTensor*>& tensors, const ComputeOptions& options) {
  const DeviceId device = options.on.device();
  Ticket last{};
  std::vector<OptimizedTensor*> updated;
  std::vector<Slice> values;
  for (OptimizedTensor* tensor : tensors) {
    if (tensor->gradient.buffer == no_buffer) {
      continue;
    }
    ++tensor->steps;
    while (static_cast<int>(tensor->state.size()) < state_tensors(plan)) {
      tensor->state.push_back(rank.allocate(Purpose::optimizer_state, tensor->value.dtype,
                                            tensor->value.elements, device));
    }
    values.push_back(tensor->value);
    updated.push_back(tensor);
  }
  const Bytes temporaries = kernels == OptimizerKernels::of_values
                                ? Bytes{}
                                : optimizer_temporaries(plan, kernels, values);
  const Slice held = temporaries > Bytes{} ? rank.allocate(Purpose::workspace, DType::uint8,
                                                           temporaries.count(), device)
                                           : Slice{};
  if (kernels != OptimizerKernels::for_all_tensors) {
    for (OptimizedTensor* tensor : updated) {
      last = step_one(rank, plan, *tensor, options);
    }
  } else if (!updated.empty()) {
    last = step_all(rank, plan, updated, options);
  }
  if (held.buffer != no_buffer) {
    rank.release(held);
  }
  return last;
}

}  // namespace lockstep
