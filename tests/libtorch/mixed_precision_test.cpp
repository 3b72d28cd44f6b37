// Mixed precision: products are computed in the narrow type, from parameters of the wide one, as
// under torch.autocast; gradients of parameters are wide again.
#include <catch2/catch.hpp>

#include "tests/libtorch/layer_case.hpp"

namespace lockstep::libtorch_test {

namespace {

// bf16 has eight bits: 1 + 2^-10 becomes 1 there.
constexpr double just_above_one = 1 + 0x1p-10;

Network two_to_one() {
  return network_of({2}, {layer("Linear", {{"", int64_t{2}}, {"", int64_t{1}}})});
}

/// The output of one Linear with these weights on (1, -1).
double output_of(DType output_dtype, DType computes_in) {
  const Network network = two_to_one();
  Memory memory;
  const Slice input = memory.add(Values::of(DType::fp32, {1, -1}));
  const Slice weight = memory.add(Values::of(DType::fp32, {just_above_one, 1}));
  const Slice bias = memory.add(Values::of(DType::fp32, {0}));
  const Slice output = memory.add(Values(output_dtype, 1));
  run_kernel(libtorch(), memory, Kernel::layer_forward, {input, weight, bias}, {output}, {1, 1},
             &network, 0, computes_in);
  return memory.load(output).number(0);
}

}  // namespace

TEST_CASE("a product rounds its parameters to the type that it computes in") {
  CHECK(output_of(DType::bf16, DType::bf16) == 0);
  CHECK(output_of(DType::fp32, DType::fp32) == 0x1p-10);
  // A narrow result of a wide product is rounded once: 2^-10 is a number of bf16.
  CHECK(output_of(DType::bf16, DType::fp32) == 0x1p-10);
}

TEST_CASE("gradients of a mixed product are those of its rounded operands") {
  const Network network = two_to_one();
  Memory memory;
  const Slice gradient = memory.add(Values::of(DType::bf16, {2}));
  const Slice input = memory.add(Values::of(DType::bf16, {3, -1}));
  const Slice weight = memory.add(Values::of(DType::fp32, {just_above_one, 4}));
  const Slice bias = memory.add(Values::of(DType::fp32, {0}));
  const Slice input_gradient = memory.add(Values(DType::bf16, 2));
  const Slice weight_gradient = memory.add(Values(DType::fp32, 2));
  const Slice bias_gradient = memory.add(Values(DType::fp32, 1));
  run_kernel(libtorch(), memory, Kernel::layer_backward, {gradient, input, weight, bias},
             {input_gradient, weight_gradient, bias_gradient}, {1}, &network, 0, DType::bf16);
  // Gradient times weight, and gradient times input.
  CHECK(memory.load(input_gradient) == Values::of(DType::bf16, {2, 8}));
  CHECK(memory.load(weight_gradient) == Values::of(DType::fp32, {6, -2}));
  CHECK(memory.load(bias_gradient) == Values::of(DType::fp32, {2}));
}

}  // namespace lockstep::libtorch_test
