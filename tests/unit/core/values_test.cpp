#include "model/core/values.hpp"

#include <catch2/catch.hpp>

using namespace lockstep;

TEST_CASE("bf16 and fp16 round to nearest, ties to even") {
  CHECK(bf16_from(1.0F) == 0x3f80);
  CHECK(bf16_from(1.00390625F) == 0x3f80);  // 1 + 2^-8 is half-way: to the even 1
  CHECK(bf16_from(1.01171875F) == 0x3f82);  // 1 + 3 * 2^-8 is half-way: to the even 1 + 2^-6
  CHECK(fp16_from(65504.0F) == 0x7bff);
  CHECK(fp16_from(65520.0F) == 0x7c00);
  CHECK(fp16_from(5.9604644775390625e-08F) == 0x0001);  // 2^-24, the smallest subnormal
  CHECK(fp16_from(1.0F) == 0x3c00);
  CHECK(float_from_fp16(0x3555) == Approx(0.333251953125));
}

TEST_CASE("every fp16 number survives the way through float") {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const bool is_nan = (bits & 0x7c00u) == 0x7c00u && (bits & 0x3ffu) != 0;
    if (!is_nan) {
      REQUIRE(fp16_from(float_from_fp16(static_cast<uint16_t>(bits))) == bits);
    }
  }
}

TEST_CASE("an integer average floors whatever the order, a float one depends on it") {
  const Values a = Values::of(DType::int64, {3});
  const Values b = Values::of(DType::int64, {4});
  const Values* both[] = {&a, &b};
  CHECK(reduce(Reduction::avg, AverageOrder::scale_then_sum, both).integer(0) == 3);
  CHECK(reduce(Reduction::avg, AverageOrder::sum_then_divide, both).integer(0) == 3);
}

TEST_CASE("fp32 sums round to fp32 at every addition") {
  const Values large = Values::of(DType::fp32, {16777216});  // 2^24
  const Values one = Values::of(DType::fp32, {1});
  const Values* contributions[] = {&large, &one, &one};
  CHECK(reduce(Reduction::sum, AverageOrder::sum_then_divide, contributions).number(0) == 16777216);
}

TEST_CASE("uint8 sums wrap at 256") {
  const Values a = Values::of(DType::uint8, {200});
  const Values b = Values::of(DType::uint8, {100});
  const Values* both[] = {&a, &b};
  CHECK(reduce(Reduction::sum, AverageOrder::sum_then_divide, both).number(0) == 44);
}
