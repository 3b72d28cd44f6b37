#include "backend/libtorch/kernels_elementwise.hpp"

#include <ATen/ATen.h>

#include <algorithm>

#include "backend/libtorch/kernels_tensor.hpp"
#include "model/core/ensure.hpp"

namespace lockstep::backend {

namespace {

at::Tensor scaled(const at::Tensor& tensor, double factor) {
  return tensor.is_floating_point() ? tensor.mul(factor) : tensor.to(at::kDouble).mul(factor);
}

// Over the shorter of the two.
void add_into(const Slice& to, const Slice& from, Operands& operands) {
  Values held = operands.load(to);
  Values addition = operands.load(from);
  if (held.empty() || addition.empty()) {
    return;
  }
  const at::Tensor sum = tensor_of(std::move(held));
  const at::Tensor term = tensor_of(std::move(addition));
  const int64_t count = std::min(sum.numel(), term.numel());
  const at::Tensor part = sum.narrow(0, 0, count);
  // A floating term is rounded once, with the sum; an integer sum takes whole numbers only.
  const at::Tensor fitting = term.narrow(0, 0, count);
  part.copy_(part.add(sum.is_floating_point() ? fitting : fitting.to(sum.scalar_type())));
  operands.store(to, values_of(sum, to.dtype));
}

at::Tensor mean_of(const at::Tensor& tensor, DType dtype) {
  if (is_floating(dtype)) {
    return tensor.to(dtype == DType::fp64 ? at::kDouble : at::kFloat).mean();
  }
  return tensor.to(at::kLong).sum().div(tensor.numel(), "trunc");
}

}  // namespace

void execute_elementwise(const Op& op, Operands& operands) {
  const OpLists& lists = op.list();
  for (size_t i = 0; i < lists.writes.size(); ++i) {
    const Slice& to = lists.writes[i];
    if (op.kernel == Kernel::add) {
      add_into(to, lists.reads[i], operands);
      continue;
    }
    const bool in_place = lists.reads.empty() || op.kernel == Kernel::fill;
    Values values = operands.load(in_place ? to : lists.reads[i]);
    if (values.empty()) {
      continue;
    }
    at::Tensor tensor = tensor_of(std::move(values));
    switch (op.kernel) {
      case Kernel::fill: tensor = at::full({tensor.numel()}, lists.scalars[0], at::kDouble); break;
      case Kernel::scale: tensor = scaled(tensor, lists.scalars[0]); break;
      case Kernel::average: tensor = mean_of(tensor, to.dtype); break;
      default: break;  // copy and cast: the write rounds
    }
    operands.store(to, values_of(tensor, to.dtype));
  }
}

}  // namespace lockstep::backend
