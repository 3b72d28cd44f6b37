// Mixed precision: products are computed in the narrow type, from parameters of the wide one, as
// under torch.autocast; gradients of parameters are wide again.
#include <catch2/catch.hpp>

#include "tests/libtorch/layer_case.hpp"

namespace lockstep::libtorch_test::mixed_precision_test {

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

TEST_CASE("the simulator's mixed products are LibTorch's, bit for bit on whole numbers") {
  const NamedArgument two{"", int64_t{2}};
  const std::vector<Network> networks = {
      network_of({3, 4}, {layer("Linear", {{"", int64_t{4}}, two})}),
      network_of({2, 4, 4}, {layer("Conv2d", {two, two, two})})};
  for (const Network& network : networks) {
    for (const DType narrow : {DType::bf16, DType::fp16}) {
      for (const DType input : {DType::fp32, narrow}) {
        INFO(network.layers[0].name << " " << name_of(narrow) << " from " << name_of(input));
        LayerValues values = values_for(network.layers[0], DType::fp32, 3, integers);
        values.input = rounded(values.input, input);
        values.output_gradient = rounded(values.output_gradient, narrow);
        // A weight between two numbers of the narrow type, and a sum of gradients that it lacks.
        values.parameters[0].set(0, 1 + 0x1p-12);
        values.gradients[0].set(0, 0x1p-12);
        const LayerResult ours = run_layer(libtorch(), network, 0, values, narrow);
        CHECK(ours == run_layer(reference(), network, 0, values, narrow));
        CHECK(ours.input_gradient.dtype() == input);
        CHECK(ours.gradients[0].dtype() == DType::fp32);
      }
    }
  }
}

TEST_CASE("mixed attention agrees within the roundings of what stands between its products") {
  for (const char* kind : {"MultiheadAttention", "CausalSelfAttention"}) {
    const Network network = network_of({3, 4}, {layer(kind, {{"", int64_t{4}}, {"", int64_t{2}}})});
    LayerValues values = values_for(network.layers[0], DType::fp32, 2, reals);
    values.output_gradient = rounded(values.output_gradient, DType::bf16);
    const LayerResult ours = run_layer(libtorch(), network, 0, values, DType::bf16);
    const LayerResult theirs = run_layer(reference(), network, 0, values, DType::bf16);
    // Twenty roundings forth and back (properties/logged/rounding.hpp), relative to the greatest
    // element: the sums here have few terms.
    const double bound = 2 * roundings(20, DType::bf16);
    CHECK(distance(ours.output, theirs.output) <= bound * greatest(theirs.output));
    CHECK(distance(ours.input_gradient, theirs.input_gradient) <=
          bound * greatest(theirs.input_gradient));
    for (size_t i = 0; i < ours.gradients.size(); ++i) {
      CHECK(distance(ours.gradients[i], theirs.gradients[i]) <=
            bound * greatest(theirs.gradients[i]));
    }
  }
}

TEST_CASE("layer norm under mixed precision computes in fp32, whatever its input and output") {
  const Network network = network_of({2, 8}, {layer("LayerNorm", {{"", int64_t{8}}})});
  LayerValues values = values_for(network.layers[0], DType::fp32, 2, reals);
  values.input = rounded(values.input, DType::bf16);
  const LayerResult ours = run_layer(libtorch(), network, 0, values, DType::bf16);
  const LayerResult theirs = run_layer(reference(), network, 0, values, DType::bf16);
  CHECK(ours.output.dtype() == DType::fp32);
  CHECK(distance(ours.output, theirs.output) <= 64 * unit_roundoff(DType::fp32));
  CHECK(distance(ours.input_gradient, theirs.input_gradient) <=
        2 * unit_roundoff(DType::bf16) * greatest(theirs.input_gradient));
}

}  // namespace lockstep::libtorch_test::mixed_precision_test
