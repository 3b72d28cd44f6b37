#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "model/core/op.hpp"
#include "model/network/execute.hpp"

namespace lockstep::backend {

at::ScalarType scalar_type_of(DType dtype);

/// A tensor whose memory is `values`, which it owns.
at::Tensor tensor_of(Values values, at::IntArrayRef sizes);
at::Tensor tensor_of(Values values);

/// The elements of a tensor, each rounded once to `dtype`.
Values values_of(const at::Tensor& tensor, DType dtype);

/// The tensor is defined and its bytes are those of `values`.
bool holds(const at::Tensor& tensor, const Values& values);

/// What all slices hold. Empty where one of them carries no values.
std::vector<Values> load_all(std::span<const Slice> slices, Operands& operands);

}  // namespace lockstep::backend
