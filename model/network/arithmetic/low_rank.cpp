#include "model/network/arithmetic/low_rank.hpp"

#include <algorithm>
#include <cmath>

#include "model/core/ensure.hpp"
#include "model/network/arithmetic/numbers.hpp"

namespace lockstep {

namespace {

/// A matrix as numbers of the type that sums are formed in.
template <class T>
struct Matrix {
  std::vector<T> numbers;
  int64_t rows = 0;
  int64_t columns = 0;
  T& at(int64_t row, int64_t column) {
    return numbers[static_cast<size_t>(row * columns + column)];
  }
};

/// Rounds what is stored to the type of the matrix, as each tensor operation of torch does.
template <class T>
T rounded(DType dtype, T number) {
  if (size_of(dtype) != 2) {
    return number;
  }
  return static_cast<T>(Values::of(dtype, {static_cast<double>(number)}).number(0));
}

template <class T>
void gram_schmidt(DType dtype, T epsilon, Matrix<T>& matrix) {
  for (int64_t column = 0; column < matrix.columns; ++column) {
    T square = 0;
    for (int64_t row = 0; row < matrix.rows; ++row) {
      square += matrix.at(row, column) * matrix.at(row, column);
    }
    const T norm = rounded(dtype, rounded(dtype, std::sqrt(square)) + epsilon);
    for (int64_t row = 0; row < matrix.rows; ++row) {
      matrix.at(row, column) = rounded(dtype, matrix.at(row, column) / norm);
    }
    for (int64_t other = column + 1; other < matrix.columns; ++other) {
      T along = 0;
      for (int64_t row = 0; row < matrix.rows; ++row) {
        along += rounded(dtype, matrix.at(row, column) * matrix.at(row, other));
      }
      along = rounded(dtype, along);
      for (int64_t row = 0; row < matrix.rows; ++row) {
        const T part = rounded(dtype, along * matrix.at(row, column));
        matrix.at(row, other) = rounded(dtype, matrix.at(row, other) - part);
      }
    }
  }
}

/// One of Householder's reflections: I - factor * v v^T, where v is 0 above `first` and 1 there.
template <class T>
struct Reflection {
  std::vector<T> vector;
  T factor = 0;

  void apply(Matrix<T>& matrix, int64_t first, int64_t column) const {
    T along = 0;
    for (int64_t row = first; row < matrix.rows; ++row) {
      along += vector[static_cast<size_t>(row)] * matrix.at(row, column);
    }
    for (int64_t row = first; row < matrix.rows; ++row) {
      matrix.at(row, column) -= factor * along * vector[static_cast<size_t>(row)];
    }
  }
};

template <class T>
Reflection<T> reflection_of(Matrix<T>& matrix, int64_t column) {
  Reflection<T> reflection;
  reflection.vector.resize(static_cast<size_t>(matrix.rows));
  T below = 0;
  for (int64_t row = column + 1; row < matrix.rows; ++row) {
    reflection.vector[static_cast<size_t>(row)] = matrix.at(row, column);
    below += matrix.at(row, column) * matrix.at(row, column);
  }
  const T first = matrix.at(column, column);
  reflection.vector[static_cast<size_t>(column)] = 1;
  if (below == 0) {
    return reflection;  // it is upper triangular already
  }
  const T length = -std::copysign(std::sqrt(first * first + below), first);
  reflection.factor = (length - first) / length;
  for (int64_t row = column + 1; row < matrix.rows; ++row) {
    reflection.vector[static_cast<size_t>(row)] /= first - length;
  }
  return reflection;
}

// The first columns of the product of all reflections: LAPACK's geqrf and orgqr.
template <class T>
void householder(Matrix<T>& matrix) {
  std::vector<Reflection<T>> reflections;
  for (int64_t column = 0; column < matrix.columns; ++column) {
    reflections.push_back(reflection_of(matrix, column));
    for (int64_t other = column; other < matrix.columns; ++other) {
      reflections.back().apply(matrix, column, other);
    }
  }
  std::fill(matrix.numbers.begin(), matrix.numbers.end(), T{});
  for (int64_t column = 0; column < matrix.columns; ++column) {
    matrix.at(column, column) = 1;
  }
  for (int64_t left = matrix.columns; left > 0; --left) {
    const int64_t step = left - 1;
    for (int64_t column = step; column < matrix.columns; ++column) {
      reflections[static_cast<size_t>(step)].apply(matrix, step, column);
    }
  }
}

}  // namespace

ProductShape product_shape(std::span<const double> scalars) {
  ensure(scalars.size() == 5, "a product has its lengths");
  return {static_cast<int64_t>(scalars[0]), static_cast<int64_t>(scalars[1]),
          static_cast<int64_t>(scalars[2]), scalars[3] != 0, scalars[4] != 0};
}

Values matrix_product(const ProductShape& shape, const Values& left, const Values& right,
                      DType dtype) {
  const int64_t size_of_left = shape.rows * shape.inner;
  const int64_t size_of_right = shape.inner * shape.columns;
  const int64_t size_of_result = shape.rows * shape.columns;
  const int64_t matrices = left.size() / size_of_left;
  ensure(left.size() == matrices * size_of_left && right.size() == matrices * size_of_right,
         "as many matrices on either side of a product");
  Values result(dtype, matrices * size_of_result);
  with_accumulator({&left, &right, &result}, [&](auto zero) {
    using T = decltype(zero);
    const std::vector<T> a = numbers_of<T>(left);
    const std::vector<T> b = numbers_of<T>(right);
    std::vector<T> sums(static_cast<size_t>(result.size()), T{});
    const auto index = [](bool transposed, int64_t row, int64_t column, int64_t rows,
                          int64_t columns) {
      return static_cast<size_t>(transposed ? column * rows + row : row * columns + column);
    };
    for (int64_t matrix = 0; matrix < matrices; ++matrix) {
      const T* left_of = a.data() + matrix * size_of_left;
      const T* right_of = b.data() + matrix * size_of_right;
      T* sums_of = sums.data() + matrix * size_of_result;
      for (int64_t row = 0; row < shape.rows; ++row) {
        for (int64_t inner = 0; inner < shape.inner; ++inner) {
          const T factor =
              left_of[index(shape.transposes_left, row, inner, shape.rows, shape.inner)];
          for (int64_t column = 0; column < shape.columns; ++column) {
            sums_of[row * shape.columns + column] +=
                factor *
                right_of[index(shape.transposes_right, inner, column, shape.inner, shape.columns)];
          }
        }
      }
    }
    store_numbers(sums, result);
  });
  return result;
}

void orthogonalize(int64_t rows, int64_t columns, double epsilon, Values& matrices) {
  const bool by_projection = columns <= 2 || size_of(matrices.dtype()) == 2;
  with_accumulator({&matrices}, [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> all = numbers_of<T>(matrices);
    const int64_t size = rows * columns;
    ensure(matrices.size() % size == 0, "a batch of whole matrices");
    for (auto begin = all.begin(); begin != all.end(); begin += size) {
      Matrix<T> whole{{begin, begin + size}, rows, columns};
      if (by_projection) {
        gram_schmidt(matrices.dtype(), static_cast<T>(epsilon), whole);
      } else {
        householder(whole);
      }
      std::ranges::copy(whole.numbers, begin);
    }
    store_numbers(all, matrices);
  });
}

}  // namespace lockstep
