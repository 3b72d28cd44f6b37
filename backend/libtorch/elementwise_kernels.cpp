#include "backend/libtorch/elementwise_kernels.hpp"

#include <ATen/ATen.h>

#include <algorithm>

#include "backend/libtorch/tensor_values.hpp"
#include "model/core/ensure.hpp"

namespace lockstep::backend {

namespace {

at::Tensor scaled(const at::Tensor& tensor, double factor) {
  return tensor.is_floating_point() ? tensor.mul(factor) : tensor.to(at::kDouble).mul(factor);
}

// Over the shorter of the two. A floating term is rounded once, with the sum; an integer sum takes
// whole numbers only.
void add_term(const Slice& to, const Slice& from, TensorOperands& operands) {
  const at::Tensor term = operands.load(from);
  if (term.defined()) {
    const at::Tensor fitting = term.narrow(0, 0, std::min(to.elements, from.elements));
    operands.add(to, is_floating(to.dtype) ? fitting : fitting.to(scalar_type_of(to.dtype)));
  }
}

// As the reference: in double, each sum rounded once.
void add_scaled_term(const Slice& to, const Slice& from, double factor, TensorOperands& operands) {
  const at::Tensor term = operands.load(from);
  const at::Tensor sum = operands.load(to);
  if (term.defined() && sum.defined()) {
    const int64_t elements = std::min(to.elements, from.elements);
    const at::Tensor scaled_term = term.narrow(0, 0, elements).to(at::kDouble).mul(factor);
    operands.store(to.part(0, elements),
                   sum.narrow(0, 0, elements).to(at::kDouble).add(scaled_term));
  }
}

at::Tensor mean_of(const at::Tensor& tensor, DType dtype) {
  if (is_floating(dtype)) {
    return tensor.to(dtype == DType::fp64 ? at::kDouble : at::kFloat).mean();
  }
  return tensor.to(at::kLong).sum().div(tensor.numel(), "trunc");
}

at::Tensor swapped(const at::Tensor& tensor, std::span<const double> sizes) {
  return tensor.view({static_cast<int64_t>(sizes[0]), static_cast<int64_t>(sizes[1]), -1})
      .transpose(0, 1)
      .flatten();
}

}  // namespace

void execute_elementwise(const Op& op, TensorOperands& operands) {
  const OpLists& lists = op.list();
  for (size_t i = 0; i < lists.writes.size(); ++i) {
    const Slice& to = lists.writes[i];
    if (op.kernel == Kernel::add) {
      add_term(to, lists.reads[i], operands);
      continue;
    }
    if (op.kernel == Kernel::add_scaled) {
      add_scaled_term(to, lists.reads[i], lists.scalars[0], operands);
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
      case Kernel::swap_outer: tensor = swapped(tensor, lists.scalars); break;
      case Kernel::average: tensor = mean_of(tensor, to.dtype); break;
      default: break;  // copy and cast: the write rounds
    }
    operands.store(to, tensor);
  }
}

}  // namespace lockstep::backend
