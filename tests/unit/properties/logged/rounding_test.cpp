#include <catch2/catch.hpp>

#include <cmath>

#include "properties/logged/rounding.hpp"

using namespace lockstep;

namespace rounding_test {

namespace {

Layer linear(int64_t in, int64_t out) {
  Layer layer;
  layer.kind = LayerKind::linear;
  layer.arguments = LinearArguments{in, out, true};
  layer.input = {in};
  layer.output = {out};
  return layer;
}

}  // namespace

TEST_CASE("the chain of rounded operations is that of the longest way through a step") {
  Network network;
  network.layers = {linear(8, 16), linear(16, 2)};
  network.loss.kind = LayerKind::cross_entropy_loss;
  network.loss.input = {2};
  // Forward and backward (8 + 1 + 16) + (16 + 1 + 2), loss 2 + 8, gradient 32 + 2 + 2,
  // optimizer 16: 106 per step.
  CHECK(rounded_operations(network, {1, 32, 2}) == 106);
  CHECK(rounded_operations(network, {4, 32, 2}) == 424);
}

TEST_CASE("gamma grows with the chain and has no value once nothing is left of a digit") {
  const double u = std::ldexp(1.0, -24);
  CHECK(gamma(1, DType::fp32) == Approx(u / (1 - u)).epsilon(1e-15));
  CHECK(gamma(1000, DType::fp32) == Approx(1000 * u / (1 - 1000 * u)).epsilon(1e-15));
  CHECK(gamma(1000, DType::int64) == 0);
  CHECK(std::isinf(gamma(256, DType::bf16)));
}

TEST_CASE("mixed precision rounds to the narrow type seven times a product and twice a layer") {
  Network network;
  Layer relu;
  relu.kind = LayerKind::relu;
  network.layers = {linear(8, 16), relu, linear(16, 2)};
  CHECK(narrow_operations(network) == 16);
}

}  // namespace rounding_test
