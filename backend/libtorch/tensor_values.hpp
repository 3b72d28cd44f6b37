#pragma once

#include <ATen/core/Tensor.h>

#include "model/core/values.hpp"

namespace lockstep::backend {

at::ScalarType scalar_type_of(DType dtype);

/// A flat tensor whose memory is `values`, which it owns.
at::Tensor tensor_of(Values values);

/// The elements of a tensor on the CPU, each rounded once to `dtype`.
Values values_of(const at::Tensor& tensor, DType dtype);

}  // namespace lockstep::backend
