// A forward that activation checkpointing runs again: what it keeps, drops, tracks and computes.
#include <catch2/catch.hpp>
#include <map>

#include "backend/gloo/world.hpp"
#include "backend/libtorch/kernels.hpp"
#include "backend/libtorch/layer_kernels.hpp"
#include "backend/libtorch/tensor_values.hpp"
#include "model/strategy/data_parallel/ddp.hpp"
#include "tests/libtorch/layer_case.hpp"

namespace lockstep::libtorch_test::checkpointing_test {

namespace {

constexpr int32_t ranks = 2;

/// Whole buffers as tensors.
class TensorMemory final : public backend::TensorOperands {
 public:
  Slice add(Values values) {
    const Slice slice{BufferId{static_cast<uint32_t>(tensors_.size() + 1)}, values.dtype(), 0,
                      values.size()};
    tensors_.emplace(slice.buffer.value, backend::tensor_of(std::move(values)));
    return slice;
  }
  at::Tensor load(const Slice& from) override { return tensors_.at(from.buffer.value); }
  void store(const Slice& to, const at::Tensor& values) override {
    tensors_.at(to.buffer.value) = values.detach().flatten();
  }
  void add(const Slice& to, const at::Tensor& values) override {
    store(to, load(to).add(values.flatten()));
  }

 private:
  std::map<uint32_t, at::Tensor> tensors_;
};

LayerDescription linear(int64_t in, int64_t out) { return layer("Linear", {{"", in}, {"", out}}); }

LayerDescription container(std::string kind, std::vector<LayerDescription> layers,
                           const std::string& checkpoint) {
  LayerDescription description = layer(std::move(kind), {{"checkpoint", checkpoint}});
  description.layers = std::move(layers);
  return description;
}

/// A transformer layer with dropout in and behind attention.
Network transformer(const std::string& checkpoint) {
  const int64_t width = 8;
  return network_of(
      {4},
      {layer("Embedding", {{"", int64_t{6}}, {"", width}}),
       container(
           "Sequential",
           {container(
                "Residual",
                {layer("LayerNorm", {{"", width}}),
                 layer("CausalSelfAttention", {{"", width}, {"", int64_t{2}}, {"dropout", 0.25}}),
                 layer("Dropout", {{"p", 0.25}})},
                "false"),
            container("Residual", {linear(width, 16), layer("GELU"), linear(16, width)}, "false")},
           checkpoint),
       linear(width, 6)},
      layer("CrossEntropyLoss"));
}

Network selective_transformer(bool selective) {
  const int64_t width = 8;
  LayerDescription attention =
      layer("CausalSelfAttention", {{"", width}, {"", int64_t{2}}, {"dropout", 0.25}});
  if (selective) {
    attention.arguments.push_back({"checkpoint", std::string("attention_core")});
  }
  return network_of(
      {4}, {layer("Embedding", {{"", int64_t{6}}, {"", width}}), attention, linear(width, 6)},
      layer("CrossEntropyLoss"));
}

Network normalised(const std::string& checkpoint) {
  return network_of(
      {4}, {linear(4, 4),
            container("Sequential",
                      {layer("BatchNorm1d", {{"", int64_t{4}}}), layer("ReLU"), linear(4, 4)},
                      checkpoint),
            linear(4, 2)});
}

/// What a rank ends with: parameters, then buffers.
struct End {
  std::vector<Values> parameters{};
  std::vector<Values> buffers{};
};

Program train(Rank& rank, const TrainingPlan* plan, int64_t steps, End* end) {
  DistributedDataParallel strategy(*plan, {});
  co_await strategy.setup(rank, Stage::fit);
  const StepOptions options;
  for (int64_t step = 0; step < steps; ++step) {
    Batch batch;
    for (int64_t i = 0; i < 4; ++i) {
      batch.samples.push_back((step * 4 + i) * ranks + rank.id());
    }
    co_await strategy.forward(rank, batch, options);
    co_await strategy.backward(rank, options);
    co_await strategy.optimizer_step(rank, {});
    co_await strategy.zero_gradients(rank, 0, true);
  }
  const Ticket all = rank.event();
  co_await rank.settle(all);
  for (const Slice& parameter : strategy.replica().parameter_values()) {
    end->parameters.push_back(rank.read(parameter));
  }
  for (const Slice& buffer : strategy.replica().state().buffer_values()) {
    end->buffers.push_back(rank.read(buffer));
  }
  co_await strategy.teardown(rank);
}

std::vector<End> trained(const Network& network, int64_t steps, bool by_libtorch = true) {
  TrainingPlan plan;
  plan.network = &network;
  plan.numerics = true;
  plan.optimizers.front().kind = OptimizerKind::adamw;
  plan.optimizers.front().lr = 0.02;
  RunOptions options;
  options.world_size = ranks;
  options.numerics = true;
  options.network = &network;
  backend::GlooOptions gloo;
  if (by_libtorch) {
    gloo.kernels = backend::make_libtorch_kernels;
  }
  std::vector<End> ends(ranks);
  const RunResult result = backend::run(options, gloo, [&](Rank& rank) {
    return train(rank, &plan, steps, &ends[static_cast<size_t>(rank.id())]);
  });
  REQUIRE_FALSE(result.hung);
  return ends;
}

}  // namespace

TEST_CASE("a forward that will run again keeps no graph, the second one does") {
  const Network network = network_of({2}, {linear(2, 2)});
  TensorMemory memory;
  const std::vector<Slice> reads = {memory.add(Values::of(DType::fp32, {1, 1})),
                                    memory.add(Values::of(DType::fp32, {1, 2, 3, 4})),
                                    memory.add(Values(DType::fp32, 2))};
  const std::vector<Slice> writes = {memory.add(Values(DType::fp32, 2))};
  backend::LayerState state;
  const auto forward = [&](std::vector<double> scalars) {
    OpLists lists;
    lists.reads = reads;
    lists.writes = writes;
    lists.scalars = scalars;
    Op op;
    op.kind = OpKind::compute;
    op.kernel = Kernel::layer_forward;
    op.lists = &lists;
    backend::execute_layer_forward(op, memory, network, state);
    return state.graphs.take(0, reads[0]).has_value();
  };
  CHECK_FALSE(forward({1, 1, 1}));
  CHECK(forward({1, 1}));
  CHECK_FALSE(forward({1, 0}));
}

TEST_CASE("checkpointing changes no bit of a training by LibTorch, dropout included") {
  for (const std::string checkpoint : {"torch", "fairscale"}) {
    const std::vector<End> with = trained(transformer(checkpoint), 4);
    const std::vector<End> without = trained(transformer("false"), 4);
    for (size_t rank = 0; rank < ranks; ++rank) {
      CHECK(with[rank].parameters == without[rank].parameters);
    }
  }
  CHECK(trained(selective_transformer(true), 4)[0].parameters ==
        trained(selective_transformer(false), 4)[0].parameters);
}

TEST_CASE("LibTorch's batch norm tracks its statistics twice in a segment, under FairScale once") {
  const std::vector<End> plain = trained(normalised("false"), 1);
  const std::vector<End> once = trained(normalised("fairscale"), 1);
  const std::vector<End> twice = trained(normalised("torch"), 1);
  for (size_t rank = 0; rank < ranks; ++rank) {
    CHECK(once[rank].buffers == plain[rank].buffers);
    CHECK(twice[rank].parameters == plain[rank].parameters);
    CHECK(once[rank].parameters == plain[rank].parameters);
    // Momentum 0.1, from a mean of 0: 0.1 m once, 0.19 m twice.
    for (int64_t i = 0; i < 4; ++i) {
      CHECK(twice[rank].buffers[0].number(i) ==
            Approx(1.9 * once[rank].buffers[0].number(i)).margin(1e-6));
    }
    CHECK(once[rank].buffers[2].integer(0) == 1);
    CHECK(twice[rank].buffers[2].integer(0) == 2);
  }
  const std::vector<End> reference = trained(normalised("torch"), 1, false);
  for (int64_t i = 0; i < 4; ++i) {
    CHECK(twice[0].buffers[0].number(i) == Approx(reference[0].buffers[0].number(i)).margin(1e-6));
  }
}

}  // namespace lockstep::libtorch_test::checkpointing_test
