#pragma once

#include <span>

#include "model/core/values.hpp"

namespace lockstep {

/// A product of two matrices that lie row by row. Where there are more numbers, it is a batch:
/// matrices lie behind each other, and each is multiplied with its own.
struct ProductShape {
  int64_t rows = 0;
  int64_t inner = 0;
  int64_t columns = 0;
  bool transposes_left = false;   ///< the left one lies as inner x rows
  bool transposes_right = false;  ///< the right one lies as columns x inner
};

/// From the scalars of Kernel::matrix_product.
ProductShape product_shape(std::span<const double> scalars);

/// Each sum in the order of the inner index, rounded once to `dtype`.
Values matrix_product(const ProductShape& shape, const Values& left, const Values& right,
                      DType dtype);

/// Makes the columns of each matrix of a batch orthonormal, as powerSGD_hook.py does: by
/// Gram-Schmidt for one or two columns and in 16 bits, where a column of zeros becomes NaN unless
/// epsilon is above 0; else by Householder's reflections, which ignore epsilon.
void orthogonalize(int64_t rows, int64_t columns, double epsilon, Values& matrices);

}  // namespace lockstep
