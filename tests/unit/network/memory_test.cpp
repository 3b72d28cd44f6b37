// What layers hold, counted by hand from the formulas of PyTorch's derivatives.yaml.
#include "model/network/memory.hpp"

#include <catch2/catch.hpp>

#include "model/network/build.hpp"

using namespace lockstep;

namespace memory_test {

namespace {

LayerDescription layer(std::string kind, std::vector<NamedArgument> arguments = {}) {
  return {.kind = std::move(kind), .arguments = std::move(arguments)};
}

LayerDescription linear(int64_t in, int64_t out) {
  return layer("Linear", {{"in_features", in}, {"out_features", out}, {"bias", false}});
}

Network built(std::vector<LayerDescription> layers, std::string loss = "CrossEntropyLoss") {
  NetworkDescription description;
  description.name = "held";
  description.input = Shape{4};
  description.layers = std::move(layers);
  description.loss = {.kind = std::move(loss)};
  BuildResult result = build_network(description);
  REQUIRE(result.ok());
  return std::move(result.network);
}

constexpr ComputingTypes single{DType::fp32, DType::fp32, true};
constexpr ComputingTypes mixed{DType::fp32, DType::bf16, true};

}  // namespace

TEST_CASE("log-softmax is kept and its backward holds two gradients as large") {
  const NetworkMemory memory = memory_of(built({linear(4, 100)}), single);
  const LayerMemory& loss = memory.losses.front();
  CHECK(loss.kept == Bytes(400));      // the log-probabilities
  CHECK(loss.forward == Bytes(400));   // the scores, which no backward reads
  CHECK(loss.backward == Bytes(800));  // of the log-probabilities, and of the scores
  CHECK(loss.after_backward == Bytes(400));
  CHECK(memory.layers[0].kept == Bytes(0));        // its input is the batch
  CHECK(memory.layers[0].backward == Bytes(400));  // the batch wants no gradient
}

TEST_CASE("under autocast log-softmax is fp32 and the gradient of the scores is narrow at last") {
  const NetworkMemory memory = memory_of(built({linear(4, 100)}), mixed);
  const LayerMemory& loss = memory.losses.front();
  CHECK(loss.kept == Bytes(400));
  CHECK(loss.forward == Bytes(200 + 400));  // the scores, and as fp32
  CHECK(loss.backward == Bytes(800));
  CHECK(loss.after_backward == Bytes(200));
}

TEST_CASE("autocast keeps narrow copies of the weights that the gradient of an input reads") {
  const NetworkMemory memory = memory_of(built({linear(4, 8), linear(8, 2)}), mixed);
  CHECK(memory.layers[0].weight_copies == Bytes(2 * 4 * 8));
  CHECK_FALSE(memory.layers[0].keeps_weight_copies);
  CHECK(memory.layers[0].kept == Bytes(2 * 4));  // the batch, narrowed
  CHECK(memory.layers[1].weight_copies == Bytes(2 * 8 * 2));
  CHECK(memory.layers[1].keeps_weight_copies);
  CHECK(memory_of(built({linear(4, 8)}), single).layers[0].weight_copies == Bytes(0));
}

TEST_CASE("a wide sum that a narrow layer reads is copied and not kept itself") {
  // A bias makes the product wide again, as its parameter is.
  const Network network = built({linear(4, 8), layer("Bias", {{"", int64_t{8}}}), linear(8, 2)});
  const NetworkMemory memory = memory_of(network, mixed);
  CHECK(memory.layers[1].kept == Bytes(0));
  CHECK(memory.layers[2].kept == Bytes(2 * 8));
  CHECK(memory.layers[2].forward == Bytes(4 * 8 + 2 * 2));  // the sum, and the output
  const NetworkMemory plain = memory_of(network, single);
  CHECK(plain.layers[2].kept == Bytes(4 * 8));
  CHECK(plain.layers[2].forward == Bytes(4 * 2));
}

TEST_CASE(
    "a tensor is accounted where it is saved first and so lives until that backward is done") {
  // GELU saves the product; the last layer saves GELU's output, which is gone when GELU's backward
  // begins.
  const Network network = built({linear(4, 8), layer("GELU"), linear(8, 2)});
  const NetworkMemory memory = memory_of(network, single);
  CHECK(memory.layers[0].kept == Bytes(0));
  CHECK(memory.layers[0].forward == Bytes(4 * 8));
  CHECK(memory.layers[1].kept == Bytes(4 * 8));
  CHECK(memory.layers[1].forward == Bytes(4 * 8));
  CHECK(memory.layers[2].kept == Bytes(4 * 8));
  CHECK(memory.layers[1].evaluated == Bytes(4 * (8 + 8)));
}

TEST_CASE("the gradient of a sum waits while that of its branch is made") {
  LayerDescription residual = layer("Residual");
  residual.layers = {linear(8, 16), layer("ReLU"), linear(16, 8)};
  const Network network = built({linear(4, 8), residual, linear(8, 2)});
  const NetworkMemory memory = memory_of(network, single);
  // 0 Linear, 1 begin, 2 Linear, 3 ReLU, 4 Linear, 5 add, 6 Linear
  REQUIRE(network.layers[5].kind == LayerKind::residual_add);
  CHECK(memory.layers[6].backward == Bytes(4 * (2 + 8)));
  CHECK(memory.layers[5].backward == Bytes(4 * 8));         // handed to both, in one memory
  CHECK(memory.layers[4].backward == Bytes(4 * (8 + 16)));  // incoming is what waits
  CHECK(memory.layers[3].backward == Bytes(4 * (8 + 16 + 16)));
  CHECK(memory.layers[2].backward == Bytes(4 * (8 + 16 + 8)));
  CHECK(memory.layers[1].backward == Bytes(4 * (8 + 8)));  // one is added to the other
  CHECK(memory.layers[1].after_backward == Bytes(4 * 8));
  CHECK(memory.layers[0].backward == Bytes(4 * 8));
}

TEST_CASE("a checkpointed segment keeps its input alone and makes the rest again") {
  LayerDescription segment = layer("Sequential", {{"checkpoint", true}});
  segment.layers = {linear(8, 16), layer("GELU"), linear(16, 8)};
  const NetworkMemory memory = memory_of(built({linear(4, 8), segment, linear(8, 2)}), single);
  CHECK(memory.layers[1].kept == Bytes(4 * 8));
  CHECK(memory.layers[1].recomputed == Bytes(0));
  CHECK(memory.layers[2].kept == Bytes(0));
  CHECK(memory.layers[2].recomputed == Bytes(4 * 16));  // what GELU reads
  CHECK(memory.layers[3].recomputed == Bytes(4 * 16));  // what GELU wrote
  CHECK(memory.layers[4].kept == Bytes(4 * 8));         // the segment's output
}

TEST_CASE("a mean of squares makes the squares first and keeps the output that it compares") {
  const NetworkMemory memory = memory_of(built({linear(4, 10)}, "MSELoss"), single);
  CHECK(memory.losses.front().kept == Bytes(40));
  CHECK(memory.losses.front().forward == Bytes(40));
  CHECK(memory.losses.front().backward == Bytes(40));
}

}  // namespace memory_test
