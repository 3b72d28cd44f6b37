#include "model/expression/tensor.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "tests/unit/expression/evaluation.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace tensor_test {

namespace {

Value tensor(DType dtype, std::vector<int64_t> shape, std::initializer_list<double> numbers) {
  return Tensor{std::move(shape), Values::of(dtype, numbers)};
}

const double not_a_number = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("the type of a new tensor follows the number") {
  CHECK(value_of("full(2, 3)") == tensor(DType::int64, {2}, {3, 3}));
  CHECK(value_of("full(2, 3.0)") == tensor(DType::fp32, {2}, {3, 3}));
  CHECK(value_of("full(2, 1 == 1)") == tensor(DType::uint8, {2}, {1, 1}));
  CHECK(value_of("full([2, 1], 0)") == tensor(DType::int64, {2, 1}, {0, 0}));
  CHECK(value_of("full([], 4)") == tensor(DType::int64, {}, {4}));
  CHECK(value_of("full(0, 4)") == tensor(DType::int64, {0}, {}));
  CHECK(value_of("arange(3)") == tensor(DType::int64, {3}, {0, 1, 2}));
  CHECK(error_of("full(1, 1e300)") == "0: 1e+300 does not fit in an fp32 tensor");
}

TEST_CASE("numbers extend to a tensor's shape and lift its type only by category") {
  CHECK(value_of("arange(3) + 1") == tensor(DType::int64, {3}, {1, 2, 3}));
  CHECK(value_of("1 - arange(3)") == tensor(DType::int64, {3}, {1, 0, -1}));
  CHECK(value_of("arange(3) * 0.5") == tensor(DType::fp32, {3}, {0, 0.5, 1}));
  CHECK(value_of("arange(3) / 2") == tensor(DType::fp32, {3}, {0, 0.5, 1}));
  CHECK(value_of("-arange(3)") == tensor(DType::int64, {3}, {0, -1, -2}));
  CHECK(value_of("(arange(3) - 1) // 2") == tensor(DType::int64, {3}, {-1, 0, 0}));
  CHECK(value_of("(arange(3) - 1) % 2") == tensor(DType::int64, {3}, {1, 0, 1}));
  CHECK(value_of("arange(3) ** 2") == tensor(DType::int64, {3}, {0, 1, 4}));
  CHECK(value_of("arange(3) > 0.5") == tensor(DType::uint8, {3}, {0, 1, 1}));
  CHECK(value_of("(arange(3) > 0) * 1000") == tensor(DType::int64, {3}, {0, 1000, 1000}));
  const Bindings half({{"x", tensor(DType::fp16, {2}, {1, 2})}});
  CHECK(value_of("x + 0.5", half) == tensor(DType::fp16, {2}, {1.5, 2.5}));
  CHECK(value_of("x + arange(2)", half) == tensor(DType::fp16, {2}, {1, 3}));
  CHECK(value_of("x / x[1]", half) == tensor(DType::fp16, {2}, {0.5, 1}));
}

TEST_CASE("results round to the type of the tensor at every store") {
  const Bindings bindings({{"large", tensor(DType::fp32, {1}, {16777216})},
                           {"half", tensor(DType::fp16, {1}, {2048})},
                           {"bytes", tensor(DType::uint8, {1}, {200})}});
  CHECK(value_of("large + 1 + 1", bindings) == tensor(DType::fp32, {1}, {16777216}));
  CHECK(value_of("half + 1", bindings) == tensor(DType::fp16, {1}, {2048}));
  CHECK(value_of("bytes + bytes", bindings) == tensor(DType::uint8, {1}, {144}));
  CHECK(value_of("bytes + 100", bindings) == tensor(DType::int64, {1}, {300}));
  CHECK(value_of("sum(bytes + bytes)", bindings) == tensor(DType::int64, {}, {144}));
}

TEST_CASE("two tensor types promote as in PyTorch") {
  CHECK(promoted(DType::fp16, DType::bf16) == DType::fp32);
  CHECK(promoted(DType::fp16, DType::fp32) == DType::fp32);
  CHECK(promoted(DType::fp64, DType::bf16) == DType::fp64);
  CHECK(promoted(DType::int64, DType::fp16) == DType::fp16);
  CHECK(promoted(DType::uint8, DType::int64) == DType::int64);
}

TEST_CASE("float tensors divide by zero as devices do, and int64 wraps") {
  CHECK(value_of("isnan(full(1, 0.0) / 0)") == tensor(DType::uint8, {1}, {1}));
  CHECK(value_of("full(1, 1) / 0 == inf") == tensor(DType::uint8, {1}, {1}));
  CHECK(value_of("full(1, 9223372036854775807) + 1 < 0") == tensor(DType::uint8, {1}, {1}));
  CHECK(value_of("(full(1, 9223372036854775807) + 1) // -1 < 0") == tensor(DType::uint8, {1}, {1}));
  CHECK(value_of("full(1, -7.5) % 2") == tensor(DType::fp32, {1}, {0.5}));
  CHECK(value_of("full(1, 7.5) // -2") == tensor(DType::fp32, {1}, {-4}));
}

TEST_CASE("reductions of a tensor have shape []") {
  CHECK(value_of("sum(arange(5))") == tensor(DType::int64, {}, {10}));
  CHECK(value_of("sum(arange(5) > 1)") == tensor(DType::int64, {}, {3}));
  CHECK(value_of("mean(arange(4))") == tensor(DType::fp32, {}, {1.5}));
  CHECK(value_of("min(arange(4) - 2)") == tensor(DType::int64, {}, {-2}));
  CHECK(value_of("max(arange(4) * 0.5)") == tensor(DType::fp32, {}, {1.5}));
  CHECK(value_of("isnan(mean(full(0, 1.0)))") == tensor(DType::uint8, {}, {1}));
  CHECK(error_of("max(full(0, 1.0))") == "0: an empty tensor has no smallest or largest element");
  const Bindings bindings({{"x", tensor(DType::fp32, {3}, {1, not_a_number, 2})}});
  CHECK(value_of("isnan(max(x)) and isnan(min(x))", bindings) == Value(true));
  CHECK(error_of("mean([full(1, 1.0), full(1, 2.0)])") ==
        "0: mean takes one tensor, not a list of tensors: torch.mean raises");
}

TEST_CASE("functions go over every element") {
  CHECK(value_of("abs(arange(3) - 2)") == tensor(DType::int64, {3}, {2, 1, 0}));
  CHECK(value_of("abs(full(1, -0.5))") == tensor(DType::fp32, {1}, {0.5}));
  CHECK(value_of("sqrt(arange(5))[4]") == tensor(DType::fp32, {}, {2}));
  CHECK(value_of("int(sum(arange(4)))") == Value(6));
  CHECK(value_of("float(mean(arange(4)))") == Value(1.5));
  CHECK(value_of("shape(full([2, 3], 0))") == Value(List{2, 3}));
  CHECK(value_of("len(full([2, 3], 0))") == Value(2));
}

TEST_CASE("softmax goes over the last dimension") {
  CHECK(value_of("softmax(full([2, 4], 7.0))") ==
        tensor(DType::fp32, {2, 4}, {.25, .25, .25, .25, .25, .25, .25, .25}));
  // e^0 / (e^0 + e^ln3) = 1/4; 1000 more on both sides must not overflow
  const Bindings bindings({{"x", tensor(DType::fp64, {2}, {1000, 1000 + std::log(3.0)})}});
  const Value shares = value_of("softmax(x)", bindings);
  CHECK(shares.tensor().values.number(0) == Approx(0.25).epsilon(1e-12));
  CHECK(shares.tensor().values.number(1) == Approx(0.75).epsilon(1e-12));
  CHECK(value_of("softmax([1, 1])") == tensor(DType::fp32, {2}, {0.5, 0.5}));
}

TEST_CASE("concat joins along the first dimension") {
  CHECK(value_of("concat([arange(2), full(1, 7)])") == tensor(DType::int64, {3}, {0, 1, 7}));
  CHECK(value_of("concat([full([1, 2], 1), full([2, 2], 0.5)])") ==
        tensor(DType::fp32, {3, 2}, {1, 1, .5, .5, .5, .5}));
  CHECK(value_of("concat([sum(arange(3)), 4])") == tensor(DType::int64, {2}, {3, 4}));
  CHECK(value_of("concat(full([2, 3], 1))") == tensor(DType::int64, {6}, {1, 1, 1, 1, 1, 1}));
  CHECK(error_of("concat([full([1, 2], 1), arange(2)])") ==
        "0: concat takes tensors that differ in the first dimension only, not [1, 2] and [2]");
}

TEST_CASE("an index drops the first dimension") {
  CHECK(value_of("full([2, 3], 5)[1]") == tensor(DType::int64, {3}, {5, 5, 5}));
  CHECK(value_of("arange(3)[-1]") == tensor(DType::int64, {}, {2}));
  CHECK(value_of("arange(3)[sum(arange(2))]") == tensor(DType::int64, {}, {1}));
  CHECK(error_of("arange(3)[0][0]") == "12: a tensor of shape [] has no elements to index");
}

TEST_CASE("lists of equal lists make a tensor") {
  CHECK(Value(tensor_of(value_of("[[1, 2], [3, 4]]"))) ==
        tensor(DType::int64, {2, 2}, {1, 2, 3, 4}));
  CHECK(Value(tensor_of(value_of("[1, 2.5]"))) == tensor(DType::fp32, {2}, {1, 2.5}));
  CHECK(Value(tensor_of(Value(3))) == tensor(DType::int64, {}, {3}));
  CHECK_THROWS_WITH(tensor_of(value_of("[[1], [2, 3]]")),
                    "the items of the list differ in shape, so it makes no tensor");
}

}  // namespace tensor_test
