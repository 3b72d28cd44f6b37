// LibTorch's kernels under a strategy: two ranks, distributed data parallel, over Gloo.
#include <catch2/catch.hpp>

#include "backend/gloo/world.hpp"
#include "backend/libtorch/kernels.hpp"
#include "model/strategy/data_parallel/ddp.hpp"
#include "tests/libtorch/layer_case.hpp"

namespace lockstep::libtorch_test::training_test {

namespace {

constexpr int32_t ranks = 2;

struct Training {
  Network network{};
  TrainingPlan plan{};
  bool by_libtorch = true;
  int steps = 20;
};

/// What one rank saw: the loss of every step, then the parameters.
struct Seen {
  std::vector<double> losses{};
  std::vector<Values> parameters{};
};

Program train(Rank& rank, const Training* training, Seen* seen) {
  DistributedDataParallel strategy(training->plan, {});
  co_await strategy.setup(rank, Stage::fit);
  const StepOptions options;
  for (int step = 0; step < training->steps; ++step) {
    Batch batch;
    batch.samples.assign(4, 0);
    for (size_t i = 0; i < 4; ++i) {
      batch.samples[i] = static_cast<int64_t>(i) * ranks + rank.id();
    }
    co_await strategy.forward(rank, batch, options);
    co_await strategy.backward(rank, options);
    co_await strategy.optimizer_step(rank, {});
    co_await strategy.zero_gradients(rank, 0, true);
    const Ticket end = rank.event();
    co_await rank.settle(end);
    seen->losses.push_back(rank.read(strategy.loss()).number(0));
  }
  for (const Replica::Parameter& parameter : strategy.replica().parameters()) {
    seen->parameters.push_back(rank.read(parameter.tensor.value));
  }
  co_await strategy.teardown(rank);
}

std::vector<Seen> trained(const Training& training) {
  RunOptions options;
  options.world_size = ranks;
  options.numerics = true;
  options.network = &training.network;
  backend::GlooOptions gloo;
  if (training.by_libtorch) {
    gloo.kernels = backend::make_libtorch_kernels;
  }
  std::vector<Seen> seen(ranks);
  const RunResult result = backend::run(options, gloo, [&](Rank& rank) {
    return train(rank, &training, &seen[static_cast<size_t>(rank.id())]);
  });
  REQUIRE_FALSE(result.hung);
  return seen;
}

LayerDescription linear(int64_t in, int64_t out) { return layer("Linear", {{"", in}, {"", out}}); }

LayerDescription residual(std::vector<LayerDescription> layers) {
  LayerDescription description = layer("Residual");
  description.layers = std::move(layers);
  return description;
}

/// A GPT of one block over 4 positions and 6 tokens.
Network small_gpt() {
  const int64_t width = 8;
  LayerDescription table = layer("Embedding", {{"", int64_t{6}}, {"", width}});
  table.arguments.push_back({"name", std::string("table")});
  LayerDescription head = layer("Linear", {{"", width}, {"", int64_t{6}}, {"bias", false}});
  head.arguments.push_back({"tied_to", std::string("table")});
  return network_of(
      {4},
      {table, layer("PositionalEmbedding", {{"", int64_t{4}}, {"", width}}),
       residual({layer("LayerNorm", {{"", width}}),
                 layer("CausalSelfAttention", {{"", width}, {"", int64_t{2}}}),
                 layer("Dropout", {{"p", 0.1}})}),
       residual({layer("LayerNorm", {{"", width}}), linear(width, 4 * width),
                 layer("GELU", {{"approximate", std::string("tanh")}}), linear(4 * width, width)}),
       layer("LayerNorm", {{"", width}}), head},
      layer("CrossEntropyLoss"));
}

Network small_convolution() {
  LayerDescription skip = residual(
      {layer("Conv2d",
             {{"", int64_t{4}}, {"", int64_t{4}}, {"", int64_t{3}}, {"padding", int64_t{1}}}),
       layer("BatchNorm2d", {{"", int64_t{4}}})});
  skip.shortcut = {layer("Conv2d", {{"", int64_t{4}}, {"", int64_t{4}}, {"", int64_t{1}}})};
  return network_of(
      {2, 6, 6},
      {layer("Conv2d", {{"", int64_t{2}}, {"", int64_t{4}}, {"", int64_t{3}}}), layer("ReLU"), skip,
       layer("MaxPool2d", {{"", int64_t{2}}}), layer("AdaptiveAvgPool2d", {{"", int64_t{1}}}),
       layer("Flatten"), linear(4, 3)},
      layer("CrossEntropyLoss"));
}

}  // namespace

TEST_CASE("ranks that train a network without reference arithmetic stay equal and learn") {
  for (const bool is_gpt : {true, false}) {
    Training training;
    training.network = is_gpt ? small_gpt() : small_convolution();
    training.plan.network = &training.network;
    training.plan.numerics = true;
    training.plan.optimizers.front().kind = OptimizerKind::adamw;
    training.plan.optimizers.front().lr = 0.02;
    const std::vector<Seen> seen = trained(training);
    CHECK(seen[0].parameters == seen[1].parameters);
    for (const Seen& rank : seen) {
      CHECK(rank.losses.back() < 0.9 * rank.losses.front());
    }
  }
}

TEST_CASE("a training of whole numbers ends in the bits of the reference arithmetic") {
  Training training;
  // Whole numbers and powers of two: the second step leaves multiples of 2^-24, well within fp64.
  training.steps = 2;
  training.network = network_of({4}, {linear(4, 3), layer("ReLU"), linear(3, 2)});
  training.plan.network = &training.network;
  training.plan.numerics = true;
  training.plan.integer_values = true;
  training.plan.parameter_dtype = DType::fp64;
  training.plan.activation_dtype = DType::fp64;
  training.plan.optimizers.front().lr = 0.125;
  const std::vector<Seen> ours = trained(training);
  training.by_libtorch = false;
  const std::vector<Seen> theirs = trained(training);
  for (size_t rank = 0; rank < ranks; ++rank) {
    CHECK(ours[rank].parameters == theirs[rank].parameters);
    CHECK(ours[rank].losses == theirs[rank].losses);
  }
}

}  // namespace lockstep::libtorch_test::training_test
