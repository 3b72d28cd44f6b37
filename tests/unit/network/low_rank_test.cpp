// Products and orthonormal columns, by hand.
#include "model/network/arithmetic/low_rank.hpp"

#include <catch2/catch.hpp>
#include <cmath>

using namespace lockstep;

TEST_CASE("a matrix product reads either side transposed where the call says so") {
  const Values left = Values::of(DType::fp32, {1, 2, 3, 4, 5, 6});  // 2 x 3
  const Values right = Values::of(DType::fp32, {1, 0, 2, 1, 0, 3});
  CHECK(matrix_product({2, 3, 2, false, false}, left, right, DType::fp32) ==
        Values::of(DType::fp32, {1 + 4, 2 + 9, 4 + 10, 5 + 18}));
  // Its transpose is 3 x 2, and `right` is 2 x 3 as it lies.
  CHECK(matrix_product({3, 2, 3, true, false}, left, right, DType::fp32) ==
        Values::of(DType::fp32, {1 + 4, 0, 2 + 12, 2 + 5, 0, 4 + 15, 3 + 6, 0, 6 + 18}));
  // `right` as 2 x 3 that is read as 3 x 2.
  CHECK(matrix_product({2, 3, 2, false, true}, left, right, DType::fp32) ==
        Values::of(DType::fp32, {1 + 6, 1 + 9, 4 + 12, 4 + 18}));
}

TEST_CASE("sums of a product in 16 bits are rounded once") {
  const Values ones = Values::of(DType::fp16, {2048, 1, 1});
  const Values sum = matrix_product({1, 3, 1, false, false}, ones,
                                    Values::of(DType::fp16, {1, 1, 1}), DType::fp16);
  CHECK(sum.number(0) == 2050);  // 2048 + 1 alone would stay 2048
}

TEST_CASE("columns become orthonormal") {
  Values matrix = Values::of(DType::fp64, {3, 1, 4, 2});  // (3, 4) and (1, 2)
  orthogonalize(2, 2, 0, matrix);
  // (3, 4) / 5; of (1, 2) remains (1, 2) - 2.2 (0.6, 0.8) = (-0.32, 0.24), whose length is 0.4.
  const double expected[] = {0.6, -0.8, 0.8, 0.6};
  for (int64_t i = 0; i < 4; ++i) {
    CHECK(matrix.number(i) == Approx(expected[i]).epsilon(1e-14));
  }
}

TEST_CASE("three columns are made orthonormal by reflections, which zeros do not harm") {
  const auto check = [](Values matrix) {
    constexpr int64_t rows = 4;
    constexpr int64_t columns = 3;
    orthogonalize(rows, columns, 0, matrix);
    for (int64_t a = 0; a < columns; ++a) {
      for (int64_t b = 0; b < columns; ++b) {
        double product = 0;
        for (int64_t row = 0; row < rows; ++row) {
          product += matrix.number(row * columns + a) * matrix.number(row * columns + b);
        }
        CHECK(product == Approx(a == b ? 1 : 0).margin(1e-14));
      }
    }
  };
  check(Values::of(DType::fp64, {1, 2, 3, 0, 1, 4, 5, 6, 0, 1, 1, 1}));
  check(Values::of(DType::fp64, {1, 2, 0, 2, 4, 0, 3, 6, 0, 4, 8, 0}));
  // The first column keeps its direction, with the sign of LAPACK.
  Values matrix = Values::of(DType::fp64, {3, 0, 0, 4, 1, 0, 0, 0, 1});
  orthogonalize(3, 3, 0, matrix);
  CHECK(matrix.number(0) == Approx(-0.6));
  CHECK(matrix.number(3) == Approx(-0.8));
  CHECK(matrix.number(6) == Approx(0).margin(1e-15));
}

TEST_CASE("a column of zeros becomes NaN unless something is added to its norm") {
  Values zeros = Values::of(DType::fp32, {0, 0});
  orthogonalize(2, 1, 0, zeros);
  CHECK(std::isnan(zeros.number(0)));
  Values held = Values::of(DType::fp32, {0, 0});
  orthogonalize(2, 1, 1e-8, held);
  CHECK(held == Values::of(DType::fp32, {0, 0}));
}

TEST_CASE("matrices behind each other are a batch") {
  const Values left = Values::of(DType::fp32, {1, 2, 3, 4});   // two of 1 x 2
  const Values right = Values::of(DType::fp32, {5, 6, 7, 8});  // two of 2 x 1
  CHECK(matrix_product({1, 2, 1, false, false}, left, right, DType::fp32) ==
        Values::of(DType::fp32, {5 + 12, 21 + 32}));
  Values columns = Values::of(DType::fp64, {3, 4, 0, 2});  // two of 2 x 1
  orthogonalize(2, 1, 0, columns);
  CHECK(columns == Values::of(DType::fp64, {3.0 / 5, 4.0 / 5, 0, 1}));
}
