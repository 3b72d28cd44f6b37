#include "model/core/values.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "model/core/numbers.hpp"

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
TEST_CASE("a product of int32 wraps at 2^32, exactly") {
  const Values a = Values::of(DType::int32, {2147483647});
  const Values* both[] = {&a, &a};  // (2^31 - 1)^2 = 2^62 - 2^32 + 1
  CHECK(reduce(Reduction::product, AverageOrder::sum_then_divide, both).number(0) == 1);
}

TEST_CASE("a term of a wider type is rounded once, with the sum") {
  Values sum = Values::of(DType::bf16, {1});
  accumulate(Reduction::sum, sum, Values::of(DType::fp32, {0.00390625 + 0.0009765625}));
  // 1 + 2^-8 + 2^-10 is past half-way to 1 + 2^-7; the term alone in bf16 is 2^-8 + 2^-10 too.
  CHECK(sum == Values::of(DType::bf16, {1.0078125}));
  Values whole = Values::of(DType::int64, {1});
  accumulate(Reduction::sum, whole, Values::of(DType::fp32, {2.9}));
  CHECK(whole.integer(0) == 3);
}

TEST_CASE("a reduction may go into one of its contributions, over any number of blocks") {
  constexpr int64_t elements = 5000;  // 20,000 bytes: two blocks and a part of one
  for (const size_t into : {0u, 1u, 2u}) {
    std::vector<Values> parts(3, Values(DType::fp32, elements));
    std::vector<std::span<const std::byte>> contributions;
    for (size_t part = 0; part < parts.size(); ++part) {
      for (int64_t i = 0; i < elements; ++i) {
        parts[part].set(i, static_cast<double>((i % 7) * (static_cast<int64_t>(part) + 1)));
      }
      contributions.emplace_back(parts[part].bytes());
    }
    reduce(DType::fp32, {Reduction::sum, AverageOrder::sum_then_divide}, contributions,
           parts[into].bytes());
    for (int64_t i = 0; i < elements; ++i) {
      REQUIRE(parts[into].number(i) == static_cast<double>(6 * (i % 7)));
    }
  }
}

TEST_CASE("NCCL scales before the sum, Gloo divides after it") {
  const Values a = Values::of(DType::bf16, {1});
  const Values b = Values::of(DType::bf16, {1});
  const Values c = Values::of(DType::bf16, {1});
  const Values* all[] = {&a, &b, &c};
  // A third is 0.333984375 in bf16; two are 0.66796875, three 1.001953125, which rounds to 1.
  CHECK(reduce(Reduction::avg, AverageOrder::scale_then_sum, all).number(0) == 1);
  const Values large = Values::of(DType::fp16, {40000});
  const Values* both[] = {&large, &large};  // the sum is beyond fp16
  CHECK(reduce(Reduction::avg, AverageOrder::scale_then_sum, both).number(0) == 40000);
  CHECK(std::isinf(reduce(Reduction::avg, AverageOrder::sum_then_divide, both).number(0)));
}

TEST_CASE("all numbers at once are the numbers one by one") {
  for (const DType dtype : {DType::fp64, DType::fp32, DType::bf16, DType::fp16, DType::int64,
                            DType::int32, DType::uint8}) {
    INFO(name_of(dtype));
    const Values values = Values::of(dtype, {0, 1, 2.75, 100.5, 255, 3});
    const std::vector<double> doubles = numbers_of<double>(values);
    const std::vector<float> floats = numbers_of<float>(values);
    const std::vector<int64_t> wholes = numbers_of<int64_t>(values);
    REQUIRE(doubles.size() == 6);
    for (size_t i = 0; i < doubles.size(); ++i) {
      CHECK(doubles[i] == values.number(static_cast<int64_t>(i)));
      CHECK(floats[i] == static_cast<float>(doubles[i]));
      CHECK(wholes[i] == values.integer(static_cast<int64_t>(i)));
    }
  }
  // Beyond 2^53 an int64 is no double, and nan is no whole number.
  Values large(DType::int64, 1);
  large.set_integer(0, 9007199254740993);
  CHECK(numbers_of<int64_t>(large) == std::vector<int64_t>{9007199254740993});
  CHECK(numbers_of<int64_t>(Values::of(DType::fp32, {std::nan("")})) == std::vector<int64_t>{0});
  CHECK(numbers_of<float>(Values(DType::fp16, 0)).empty());
}
