// Every kind of layer in every floating type, and types that mix.
#include <catch2/catch.hpp>

#include "tests/libtorch/layer_case.hpp"

namespace lockstep::libtorch_test::dtype_test {

namespace {

/// Fewer than 64 roundings on the way to any number of these small layers, each of a number no
/// greater than `size`.
void check_close(const Values& found, const Values& exact, double size) {
  CHECK(distance(found, exact) <= roundings(64, found.dtype()) * size);
}

}  // namespace

TEST_CASE("every kind of layer runs in every floating type") {
  for (const Network& network : one_layer_of_each_kind()) {
    const bool draws = network.layers[0].kind == LayerKind::dropout ||
                       network.layers[0].kind == LayerKind::stochastic_depth;
    const LayerValues exact_values = values_for(network.layers[0], DType::bf16, 4, reals);
    const LayerResult exact = run_layer(libtorch(), network, 0, rounded(exact_values, DType::fp64));
    for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16}) {
      INFO(name_of(network.layers[0].kind) << " " << name_of(dtype));
      const LayerResult result = run_layer(libtorch(), network, 0, rounded(exact_values, dtype));
      REQUIRE(result.output.dtype() == dtype);
      if (draws) {
        continue;  // the mask follows from the bytes of the input, which differ
      }
      check_close(result.output, exact.output, 4);
      if (!result.input_gradient.empty()) {
        check_close(result.input_gradient, exact.input_gradient, 8);
      }
      for (size_t i = 0; i < result.gradients.size(); ++i) {
        check_close(result.gradients[i], exact.gradients[i], 16);
      }
    }
  }
}

TEST_CASE("fp32 parameters under bf16 activations compute in fp32 and round once") {
  const Network network = network_of({3}, {layer("Linear", {{"", int64_t{3}}, {"", int64_t{1}}})});
  LayerValues values = rounded(values_for(network.layers[0], DType::fp32, 1, reals), DType::bf16);
  values.parameters = {Values::of(DType::fp32, {1 + 0x1p-12, 1, -1}), Values::of(DType::fp32, {0})};
  values.gradients = {Values(DType::fp32, 3), Values(DType::fp32, 1)};
  values.input = Values::of(DType::bf16, {1, 1, 2});
  values.output_gradient = Values::of(DType::bf16, {3});
  const LayerResult result = run_layer(libtorch(), network, 0, values);
  CHECK(result.output == Values::of(DType::bf16, {0x1p-12}));  // lost if the weight were rounded
  CHECK(result.gradients[0] == Values::of(DType::fp32, {3, 3, 6}));
  CHECK(result == run_layer(reference(), network, 0, values));
}

TEST_CASE("a tied weight is read first and gets its gradient first") {
  LayerDescription tied = layer("Linear", {{"", int64_t{3}}, {"", int64_t{5}}});
  tied.arguments.push_back({"tied_to", std::string("table")});
  LayerDescription table = layer("Embedding", {{"", int64_t{5}}, {"", int64_t{3}}});
  table.arguments.push_back({"name", std::string("table")});
  const Network network = network_of({2}, {table, tied});
  LayerValues values = values_for(network.layers[1], DType::fp32, 2, integers);
  values.parameters.insert(values.parameters.begin(), integers(DType::fp32, 15, 40));
  values.gradients.insert(values.gradients.begin(), integers(DType::fp32, 15, 41));
  CHECK(run_layer(libtorch(), network, 1, values) == run_layer(reference(), network, 1, values));
}

}  // namespace lockstep::libtorch_test::dtype_test
