#include "backend/libtorch/elementwise_kernels.hpp"

#include <ATen/ATen.h>

#include <algorithm>

#include "model/core/ensure.hpp"

namespace lockstep::backend {

namespace {

at::Tensor scaled(const at::Tensor& tensor, double factor) {
  return tensor.is_floating_point() ? tensor.mul(factor) : tensor.to(at::kDouble).mul(factor);
}

// Over the shorter of the two.
void add_into(const Slice& to, const Slice& from, TensorOperands& operands) {
  const at::Tensor sum = operands.load(to);
  const at::Tensor term = operands.load(from);
  if (!sum.defined() || !term.defined()) {
    return;
  }
  const int64_t count = std::min(sum.numel(), term.numel());
  const at::Tensor part = sum.narrow(0, 0, count);
  // A floating term is rounded once, with the sum; an integer sum takes whole numbers only.
  const at::Tensor fitting = term.narrow(0, 0, count);
  part.copy_(part.add(sum.is_floating_point() ? fitting : fitting.to(sum.scalar_type())));
  operands.store(to, sum);
}

at::Tensor mean_of(const at::Tensor& tensor, DType dtype) {
  if (is_floating(dtype)) {
    return tensor.to(dtype == DType::fp64 ? at::kDouble : at::kFloat).mean();
  }
  return tensor.to(at::kLong).sum().div(tensor.numel(), "trunc");
}

}  // namespace

void execute_elementwise(const Op& op, TensorOperands& operands) {
  const OpLists& lists = op.list();
  for (size_t i = 0; i < lists.writes.size(); ++i) {
    const Slice& to = lists.writes[i];
    if (op.kernel == Kernel::add) {
      add_into(to, lists.reads[i], operands);
      continue;
    }
    const bool in_place = lists.reads.empty() || op.kernel == Kernel::fill;
    at::Tensor tensor = operands.load(in_place ? to : lists.reads[i]);
    if (!tensor.defined()) {
      continue;
    }
    switch (op.kernel) {
      case Kernel::fill: tensor = at::full_like(tensor, lists.scalars[0], at::kDouble); break;
      case Kernel::scale: tensor = scaled(tensor, lists.scalars[0]); break;
      case Kernel::average: tensor = mean_of(tensor, to.dtype); break;
      default: break;  // copy and cast: the write rounds
    }
    operands.store(to, tensor);
  }
}

}  // namespace lockstep::backend
