#include "backend/libtorch/low_rank_kernels.hpp"

#include <ATen/ATen.h>

#include "backend/libtorch/tensor_values.hpp"
#include "model/network/arithmetic/low_rank.hpp"

namespace lockstep::backend {

namespace {

at::Tensor product_on_device(const ProductShape& shape, const at::Tensor& left,
                             const at::Tensor& right) {
  const auto matrix = [](const at::Tensor& flat, bool transposed, int64_t rows, int64_t columns) {
    return transposed ? flat.view({-1, columns, rows}).transpose(1, 2)
                      : flat.view({-1, rows, columns});
  };
  return at::matmul(matrix(left, shape.transposes_left, shape.rows, shape.inner),
                    matrix(right, shape.transposes_right, shape.inner, shape.columns))
      .contiguous()
      .view({-1});
}

at::Tensor orthonormal_on_device(int64_t rows, int64_t columns, double epsilon,
                                 const at::Tensor& flat) {
  const at::Tensor matrices = flat.view({-1, rows, columns}).clone();
  if (columns > 2 && flat.element_size() != 2) {
    return std::get<0>(at::linalg_qr(matrices)).contiguous().view({-1});
  }
  for (int64_t column = 0; column < columns; ++column) {
    const at::Tensor own = matrices.narrow(2, column, 1);
    own.div_(at::linalg_vector_norm(own, 2, {1}, true) + epsilon);
    if (column + 1 < columns) {
      const at::Tensor rest = matrices.narrow(2, column + 1, columns - column - 1);
      rest.sub_((own * rest).sum({1}, true) * own);
    }
  }
  return matrices.view({-1});
}

void execute_product(const OpLists& lists, TensorOperands& operands) {
  const Slice& to = lists.writes[0];
  const at::Tensor left = operands.load(lists.reads[0]);
  const at::Tensor right = operands.load(lists.reads[1]);
  if (!left.defined() || !right.defined()) {
    return;
  }
  const ProductShape shape = product_shape(lists.scalars);
  operands.store(to, left.is_cuda() ? product_on_device(shape, left, right)
                                    : tensor_of(matrix_product(
                                          shape, values_of(left, lists.reads[0].dtype),
                                          values_of(right, lists.reads[1].dtype), to.dtype)));
}

}  // namespace

void execute_low_rank(const Op& op, TensorOperands& operands) {
  const OpLists& lists = op.list();
  if (op.kernel == Kernel::matrix_product) {
    execute_product(lists, operands);
    return;
  }
  const Slice& to = lists.writes[0];
  const at::Tensor flat = operands.load(to);
  if (!flat.defined()) {
    return;
  }
  const auto rows = static_cast<int64_t>(lists.scalars[0]);
  const auto columns = static_cast<int64_t>(lists.scalars[1]);
  if (flat.is_cuda()) {
    operands.store(to, orthonormal_on_device(rows, columns, lists.scalars[2], flat));
    return;
  }
  Values matrix = values_of(flat, to.dtype);
  orthogonalize(rows, columns, lists.scalars[2], matrix);
  operands.store(to, tensor_of(std::move(matrix)));
}

}  // namespace lockstep::backend
