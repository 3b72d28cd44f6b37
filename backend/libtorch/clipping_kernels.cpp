#include "backend/libtorch/clipping_kernels.hpp"

#include <ATen/ATen.h>

#include "backend/libtorch/tensor_values.hpp"

namespace lockstep::backend {

namespace {

at::Tensor squared_norm_of(const std::vector<at::Tensor>& gradients) {
  at::Tensor sum = at::zeros({1}, gradients.front().options().dtype(at::kDouble));
  for (const at::Tensor& gradient : gradients) {
    sum += gradient.to(at::kDouble).square().sum();
  }
  return sum;
}

// clip_grad_norm_: its arithmetic is that of the norm's type.
at::Tensor coefficient_of(const at::Tensor& squared_norm, double max_norm) {
  return squared_norm.sqrt().add(1e-6).reciprocal().mul(max_norm).clamp_max(1.0);
}

}  // namespace

void execute_clipping(const Op& op, TensorOperands& operands) {
  const OpLists& lists = op.list();
  if (op.kernel == Kernel::squared_norm) {
    const std::vector<at::Tensor> gradients = load_all(lists.reads, operands);
    if (!gradients.empty()) {
      operands.store(lists.writes[0], squared_norm_of(gradients));
    }
    return;
  }
  const bool by_norm = op.kernel == Kernel::clip_by_norm;
  const at::Tensor squared_norm = by_norm ? operands.load(lists.reads[0]) : at::Tensor();
  for (const Slice& write : lists.writes) {
    const at::Tensor gradient = operands.load(write);
    if (!gradient.defined() || (by_norm && !squared_norm.defined())) {
      continue;
    }
    operands.store(write, by_norm ? gradient.mul(coefficient_of(squared_norm, lists.scalars[0]))
                                  : gradient.clamp(-lists.scalars[0], lists.scalars[0]));
  }
}

void execute_unscaling(const Op& op, TensorOperands& operands) {
  const OpLists& lists = op.list();
  const Slice& flag = lists.writes.front();
  for (const Slice& write : lists.writes.subspan(1)) {
    const at::Tensor gradient = operands.load(write);
    if (!gradient.defined()) {
      continue;
    }
    if (!gradient.isfinite().all().item<bool>()) {
      operands.store(flag, at::ones({1}, gradient.options().dtype(at::kFloat)));
    }
    operands.store(write, gradient.mul(lists.scalars[0]));
  }
}

}  // namespace lockstep::backend
