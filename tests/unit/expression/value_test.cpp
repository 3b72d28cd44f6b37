#include "model/expression/value.hpp"

#include <catch2/catch.hpp>
#include <limits>

#include "model/expression/evaluation_error.hpp"

using namespace lockstep;

TEST_CASE("a value prints as an expression would write it") {
  CHECK(text_of(Value()) == "null");
  CHECK(text_of(Value(true)) == "true");
  CHECK(text_of(Value(-3)) == "-3");
  CHECK(text_of(Value(1.0)) == "1.0");
  CHECK(text_of(Value(0.1)) == "0.1");
  CHECK(text_of(Value("it's\n")) == R"('it\'s\n')");
  CHECK(text_of(Value(List{1, List{2.5}, "a"})) == "[1, [2.5], 'a']");
  CHECK(text_of(Value(Map{{"a", 1}})) == "{'a': 1}");
  CHECK(text_of(Value(Handle{Handle::Kind::metric, "val_f1"})) == "metric val_f1");
  CHECK(text_of(Value(Tensor{{2, 2}, Values::of(DType::int64, {1, 2, 3, 4})})) ==
        "tensor([[1, 2], [3, 4]], int64)");
  CHECK(text_of(Value(Tensor{{}, Values::of(DType::fp32, {1.5})})) == "tensor(1.5, fp32)");
  CHECK(text_of(Value(List{1, 2, 3}), 2) == "[1, 2, ...]");
}

TEST_CASE("a quantity prints exactly, in the unit of the smallest number") {
  CHECK(text_of(Value(Time(10'000'000'000))) == "10 ms");
  CHECK(text_of(Value(Time(1'500'000'000))) == "1500 us");
  CHECK(text_of(Value(Time(1))) == "1 ps");
  CHECK(text_of(Value(Time(0))) == "0 ps");
  CHECK(text_of(Value(Bytes(64 * 1024 * 1024))) == "64 MiB");
  CHECK(text_of(Value(Bytes(2'000'000))) == "2 MB");
  CHECK(text_of(Value(Flops(1'500'000'000))) == "1500 MFLOP");
  CHECK(text_of(Value(Flops(-500'000))) == "-0.5 MFLOP");
  CHECK(text_of(Value(BytesPerSecond(125'000'000))) == "1 Gb/s");
}

TEST_CASE("values are equal when kind and content are") {
  CHECK(Value(1) == Value(1));
  CHECK_FALSE(Value(1) == Value(1.0));
  CHECK_FALSE(Value(1) == Value(true));
  CHECK_FALSE(Value(Time(1)) == Value(Bytes(1)));
  CHECK(Value(std::numeric_limits<double>::quiet_NaN()) ==
        Value(std::numeric_limits<double>::quiet_NaN()));
  CHECK(Value(List{1, Map{{"a", 2}}}) == Value(List{1, Map{{"a", 2}}}));
  CHECK_FALSE(Value(Tensor{{2}, Values::of(DType::fp32, {1, 2})}) ==
              Value(Tensor{{2, 1}, Values::of(DType::fp32, {1, 2})}));
}

TEST_CASE("lists are bounded in depth and in size, shared parts counted each time") {
  Value deep = List{};
  const auto nest = [&] {
    for (int i = 0; i < 100; ++i) {
      deep = List{deep};
    }
  };
  CHECK_THROWS_AS(nest(), OperationError);
  Value wide = 0;
  const auto double_up = [&] {
    for (int i = 0; i < 40; ++i) {
      wide = List{wide, wide};
    }
  };
  CHECK_THROWS_AS(double_up(), OperationError);
}

TEST_CASE("every unit is found by its own spelling and by no other") {
  for (const Unit& one : units) {
    CHECK(find_unit(one.name) == &one);
  }
  CHECK(find_unit("mb") == nullptr);
  CHECK(find_unit("") == nullptr);
}
