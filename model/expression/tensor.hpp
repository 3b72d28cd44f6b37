#pragma once

#include <cstdint>
#include <vector>

#include "model/core/dtype.hpp"
#include "model/expression/expression.hpp"
#include "model/expression/value.hpp"

namespace lockstep {

// Tensors in expressions, with PyTorch's result types (PyTorch documentation, "torch.dtype" and
// "Tensor Attributes: type promotion"), rounding to the type at every store. Differences:
// - Shapes are equal, or one operand is a number or of shape []; other broadcasting is an error.
// - An int with a uint8 tensor gives int64, because truth values are uint8 here.
// - Truth values are 0 and 1 in arithmetic: 1 + 1 is 2.
// Floats follow IEEE (1 / 0 is inf, as on the device); integers wrap, and // or % by 0 is an error.
// fp16 and bf16 compute in fp32. All errors are OperationError.

/// The type of the result of two operands that both have dimensions.
DType promoted(DType a, DType b);

/// At least one operand is a tensor, the other a tensor or a number. / of integers is fp32;
/// comparisons are uint8.
Value elementwise(Operator operation, const Value& left, const Value& right);

/// A tensor as it is; a number as shape []; a list of numbers or of such lists of equal length as
/// the tensor of that shape: float gives fp32, int gives int64, bool gives uint8.
Tensor tensor_of(const Value& value);
Tensor full(std::vector<int64_t> shape, const Value& number);
/// int64 0 .. count - 1.
Tensor arange(int64_t count);

/// Shape []. A sum is taken in fp64 and rounded once (integers: int64, wrapping). The mean of
/// integers is fp32; of nothing nan. min and max of nothing are errors; nan wins.
Tensor sum(const Tensor& tensor);
Tensor mean(const Tensor& tensor);
Tensor extreme(Operator less_or_greater, const Tensor& tensor);

Tensor absolute(const Tensor& tensor);
/// Integers give fp32; of a negative number nan.
Tensor square_root(const Tensor& tensor);
Tensor exponential(const Tensor& tensor);
Tensor logarithm(const Tensor& tensor);
/// uint8.
Tensor is_nan(const Tensor& tensor);
/// Over the last dimension, computed in fp64 and rounded once; integers give fp32.
Tensor softmax(const Tensor& tensor);
/// Along the first dimension; all others are equal. Shape [] counts as [1]. Types are promoted.
Tensor concat(const std::vector<Tensor>& parts);
/// x[i]: drops the first dimension; a negative index counts from the end.
Tensor at(const Tensor& tensor, int64_t index);

}  // namespace lockstep
