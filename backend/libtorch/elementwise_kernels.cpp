#include "backend/libtorch/elementwise_kernels.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

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

at::Tensor adasum_of(const at::Tensor& first, const at::Tensor& second) {
  const at::Tensor one = first.to(at::kDouble);
  const at::Tensor other = second.to(at::kDouble);
  const at::Tensor dot = one.dot(other);
  const double least = std::sqrt(std::numeric_limits<double>::min());
  const auto coefficient = [&](const at::Tensor& of) {
    const at::Tensor squared_norm = of.dot(of);
    return at::where(squared_norm < least, at::ones_like(dot), 1 - dot / (2 * squared_norm));
  };
  return one * coefficient(one) + other * coefficient(other);
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
    if (op.kernel == Kernel::adasum) {
      const at::Tensor one = operands.load(lists.reads[i]);
      const at::Tensor other = operands.load(lists.reads[lists.writes.size() + i]);
      if (one.defined() && other.defined()) {
        operands.store(to, adasum_of(one, other));
      }
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
