#include "model/strategy/local_model/optimizer.hpp"

#include <algorithm>

#include "model/network/optimizer/optimizer_rule.hpp"
#include "model/network/optimizer/update_kernel.hpp"
#include "model/strategy/local_model/elementwise.hpp"

namespace lockstep {

OptimizerPlan scheduled(OptimizerPlan plan, const UpdateOptions& options) {
  plan.lr = options.learning_rate.value_or(plan.lr);
  if (options.momentum) {
    set_first_momentum(plan, options.momentum->first);
    plan.beta2 = options.momentum->second_beta.value_or(plan.beta2);
  }
  return plan;
}

void set_first_momentum(OptimizerPlan& plan, double momentum) {
  (has_betas(plan) ? plan.beta1 : plan.momentum) = momentum;
}

bool has_betas(const OptimizerPlan& plan) {
  return rule_of(plan.kind).momentum() == MomentumArgument::first_beta;
}

double first_momentum(const OptimizerPlan& plan) {
  switch (rule_of(plan.kind).momentum()) {
    case MomentumArgument::momentum: return plan.momentum;
    case MomentumArgument::first_beta: return plan.beta1;
    case MomentumArgument::none: break;
  }
  return 0;
}

bool has_momentum(const OptimizerPlan& plan) {
  return rule_of(plan.kind).momentum() != MomentumArgument::none;
}

int state_tensors(const OptimizerPlan& plan) {
  return static_cast<int>(rule_of(plan.kind).state(plan, {1}).size());
}

int64_t state_elements(const OptimizerPlan& plan, const Shape& parameter) {
  int64_t elements = 0;
  for (const OptimizerState& state : rule_of(plan.kind).state(plan, parameter)) {
    elements += state.elements;
  }
  return elements;
}

std::string_view class_name_of(const OptimizerPlan& plan) {
  const bool is_lion = plan.kind == OptimizerKind::lion;
  if (plan.is_on_host) {
    return is_lion                               ? "DeepSpeedCPULion"
           : plan.kind == OptimizerKind::adagrad ? "DeepSpeedCPUAdagrad"
                                                 : "DeepSpeedCPUAdam";
  }
  if (plan.is_fused) {
    return is_lion ? "FusedLion" : "FusedAdam";
  }
  return rule_of(plan.kind).name();
}

// Autocast is that of the device that computes.
OptimizerKernels kernels_of(const TrainingPlan& plan) {
  return plan.numerics           ? OptimizerKernels::of_values
         : plan.autocast_of_cuda ? OptimizerKernels::for_all_tensors
                                 : OptimizerKernels::for_each_tensor;
}

namespace {

// A part of a parameter is a vector.
Shape shape_of(const OptimizedTensor& tensor) {
  const Shape whole = tensor.shape == nullptr ? Shape{} : *tensor.shape;
  return elements_of(whole) == tensor.value.elements ? whole : Shape{tensor.value.elements};
}

// The gradient is read, all else is read and written.
Bytes moved_by_update_of(const OptimizerRule& rule, const OptimizedTensor& tensor) {
  Bytes moved = tensor.value.bytes() * (3 + rule.further_passes());
  for (const Slice& state : tensor.state) {
    moved += state.bytes() * 2;
  }
  return moved;
}

Ticket step_one(Rank& rank, const OptimizerPlan& plan, OptimizedTensor& tensor,
                const ComputeOptions& options) {
  const OptimizerRule& rule = rule_of(plan.kind);
  std::vector<Slice> writes{tensor.value};
  writes.insert(writes.end(), tensor.state.begin(), tensor.state.end());
  const UpdateMoment moment{tensor.steps, rule.advance(plan, tensor.steps, tensor.numbers)};
  const bool is_vector = tensor.shape == nullptr || tensor.shape->empty();
  const bool takes_own_norms = !rule.is_elementwise() && is_vector;
  const std::vector<double> scalars = takes_own_norms
                                          ? scalars_of_part(plan, moment, 0, UpdateCall::Use::part)
                                          : rule.scalars(plan, moment, shape_of(tensor));
  KernelCall call;
  call.kernel = rule.kernel();
  call.reads = {&tensor.gradient, 1};
  call.writes = writes;
  call.scalars = scalars;
  call.memory_traffic = moved_by_update_of(rule, tensor);
  return rank.compute(call, options);
}

// Computes no values.
Ticket step_all(Rank& rank, const OptimizerPlan& plan, const std::vector<OptimizedTensor*>& tensors,
                const ComputeOptions& options) {
  const OptimizerRule& rule = rule_of(plan.kind);
  std::vector<Slice> reads;
  std::vector<Slice> writes;
  KernelCall call;
  call.kernel = rule.kernel();
  for (OptimizedTensor* tensor : tensors) {
    rule.advance(plan, tensor->steps, tensor->numbers);
    call.memory_traffic += moved_by_update_of(rule, *tensor);
    reads.push_back(tensor->gradient);
    writes.push_back(tensor->value);
    writes.insert(writes.end(), tensor->state.begin(), tensor->state.end());
  }
  call.reads = reads;
  call.writes = writes;
  return rank.compute(call, options);
}

}  // namespace

void make_optimizer_state(Rank& rank, const OptimizerPlan& plan, OptimizedTensor& tensor,
                          const ComputeOptions& options) {
  const std::vector<OptimizerState> states = rule_of(plan.kind).state(plan, shape_of(tensor));
  for (size_t index = tensor.state.size(); index < states.size(); ++index) {
    const Slice made = rank.allocate(Purpose::optimizer_state, tensor.value.dtype,
                                     states[index].elements, options.on.device());
    if (states[index].initial != 0) {
      elementwise(rank, Kernel::fill, {}, {made}, states[index].initial, options);
    }
    tensor.state.push_back(made);
  }
}

Bytes optimizer_temporaries(const OptimizerPlan& plan, OptimizerKernels kernels,
                            const std::vector<Slice>& values) {
  if (plan.is_on_host || plan.is_fused) {
    return {};  // they compute in place
  }
  const UpdateTemporaries temporaries = rule_of(plan.kind).temporaries(plan);
  const bool one_by_one = kernels == OptimizerKernels::for_each_tensor || !temporaries.has_foreach;
  Bytes bytes{};
  for (const Slice& value : values) {
    const Bytes here = value.bytes() * (one_by_one ? temporaries.for_each : temporaries.for_all);
    bytes = one_by_one ? std::max(bytes, here) : bytes + here;
  }
  return bytes;
}

Slice hold_temporaries(Rank& rank, const OptimizerPlan& plan, OptimizerKernels kernels,
                       const std::vector<Slice>& values, DeviceId device) {
  const Bytes temporaries = kernels == OptimizerKernels::of_values
                                ? Bytes{}
                                : optimizer_temporaries(plan, kernels, values);
  return temporaries > Bytes{}
             ? rank.allocate(Purpose::workspace, DType::uint8, temporaries.count(), device)
             : Slice{};
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
    make_optimizer_state(rank, plan, *tensor, options);
    values.push_back(tensor->value);
    updated.push_back(tensor);
  }
  const Slice held = hold_temporaries(rank, plan, kernels, values, device);
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
