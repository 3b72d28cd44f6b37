// What a forward keeps for its backward, and what happens where it is gone.
#include <catch2/catch.hpp>
#include <thread>

#include "tests/libtorch/layer_case.hpp"

namespace lockstep::libtorch_test::kept_graph_test {

namespace {

/// One layer whose forward and backward are called one by one.
class Stepwise {
 public:
  Stepwise(Network network, LayerValues values, Execute execute)
      : network_(std::move(network)), values_(std::move(values)), execute_(std::move(execute)) {
    const DType dtype = values_.output_gradient.dtype();
    input = memory.add(values_.input);
    output = memory.add(Values(dtype, values_.output_gradient.size()));
    input_gradient = memory.add(Values(dtype, values_.input.size()));
    output_gradient_ = memory.add(values_.output_gradient);
    for (const Values& parameter : values_.parameters) {
      parameters.push_back(memory.add(parameter));
      gradients.push_back(memory.add(Values(dtype, parameter.size())));
    }
  }

  void forward(bool training = true) {
    std::vector<Slice> reads{input};
    reads.insert(reads.end(), parameters.begin(), parameters.end());
    run_kernel(execute_, memory, Kernel::layer_forward, reads, {output},
               {static_cast<double>(values_.samples), training ? 1.0 : 0.0}, &network_);
  }
  void backward() {
    std::vector<Slice> reads{output_gradient_, input};
    reads.insert(reads.end(), parameters.begin(), parameters.end());
    std::vector<Slice> writes{input_gradient};
    writes.insert(writes.end(), gradients.begin(), gradients.end());
    run_kernel(execute_, memory, Kernel::layer_backward, reads, writes,
               {static_cast<double>(values_.samples)}, &network_);
  }
  Values number(const Slice& slice) { return memory.load(slice); }

  Memory memory;
  Slice input;
  Slice output;
  Slice input_gradient;
  std::vector<Slice> parameters;
  std::vector<Slice> gradients;

 private:
  Network network_;
  LayerValues values_;
  Execute execute_;
  Slice output_gradient_;
};

Stepwise stepwise(LayerDescription description, int64_t features, Draw draw,
                  Execute execute = libtorch()) {
  Network network = network_of({features}, {std::move(description)});
  LayerValues values = values_for(network.layers[0], DType::fp32, 4, draw);
  return Stepwise(std::move(network), std::move(values), std::move(execute));
}

LayerDescription linear() { return layer("Linear", {{"", int64_t{6}}, {"", int64_t{6}}}); }

}  // namespace

TEST_CASE("gradients are added to what is there") {
  Stepwise run = stepwise(linear(), 6, integers);
  run.forward();
  run.backward();
  const Values once = run.number(run.gradients[0]);
  REQUIRE(greatest(once) > 0);
  run.forward();
  run.backward();
  for (int64_t i = 0; i < once.size(); ++i) {
    CHECK(run.number(run.gradients[0]).number(i) == 2 * once.number(i));
  }
}

TEST_CASE("a backward without its forward, or a second one, recomputes the same gradients") {
  for (const std::string kind : {"Linear", "GELU", "LayerNorm"}) {
    const auto fresh = [&kind] {
      return stepwise(kind == "Linear"      ? linear()
                      : kind == "LayerNorm" ? layer(kind, {{"", int64_t{6}}})
                                            : layer(kind),
                      6, reals);
    };
    Stepwise kept = fresh();
    kept.forward();
    kept.backward();
    const Values expected = kept.number(kept.input_gradient);
    kept.backward();
    CHECK(kept.number(kept.input_gradient) == expected);
    Stepwise recomputed = fresh();
    recomputed.backward();
    CHECK(recomputed.number(recomputed.input_gradient) == expected);
    Stepwise evaluated = fresh();
    evaluated.forward(false);
    evaluated.backward();
    CHECK(evaluated.number(evaluated.input_gradient) == expected);
  }
}

TEST_CASE("a kept graph of other values is not used") {
  Stepwise run = stepwise(linear(), 6, integers);
  run.forward();
  const Values doubled = [&run] {
    Values weight = run.number(run.parameters[0]);
    scale(weight, 2);
    return weight;
  }();
  run.memory.store(run.parameters[0], doubled);
  run.backward();
  const Values after = run.number(run.input_gradient);
  Stepwise other = stepwise(linear(), 6, integers);
  other.memory.store(other.parameters[0], doubled);
  other.forward();
  other.backward();
  CHECK(after == other.number(other.input_gradient));
  CHECK(greatest(after) > 0);
}

TEST_CASE("a recomputed forward drops what the first one dropped, another seed other elements") {
  const LayerDescription dropout = layer("Dropout", {{"p", 0.5}});
  Stepwise kept = stepwise(dropout, 500, reals);
  kept.forward();
  const Values output = kept.number(kept.output);
  kept.backward();
  Stepwise recomputed = stepwise(dropout, 500, reals);
  recomputed.backward();
  CHECK(recomputed.number(recomputed.input_gradient) == kept.number(kept.input_gradient));
  kept.forward();
  CHECK(kept.number(kept.output) == output);
  Stepwise other = stepwise(dropout, 500, reals, libtorch(7));
  other.forward();
  CHECK_FALSE(other.number(other.output) == output);
}

TEST_CASE("dropout keeps its share, scales what it keeps, and rests in evaluation") {
  constexpr int64_t features = 2500;
  Stepwise run = stepwise(layer("Dropout", {{"p", 0.25}}), features, reals);
  run.forward();
  int64_t kept = 0;
  for (int64_t i = 0; i < 4 * features; ++i) {
    kept += run.number(run.output).number(i) != 0 ? 1 : 0;
  }
  // 10,000 draws: the standard deviation is sqrt(10,000 * 0.25 * 0.75), about 43; six of them.
  CHECK(kept > 7500 - 260);
  CHECK(kept < 7500 + 260);
  run.forward(false);
  CHECK(run.number(run.output) == run.number(run.input));
}

TEST_CASE("attention drops weights in training only, the same ones when recomputed") {
  Network network = network_of(
      {4, 6},
      {layer("CausalSelfAttention", {{"", int64_t{6}}, {"", int64_t{2}}, {"dropout", 0.5}})});
  const LayerValues values = values_for(network.layers[0], DType::fp64, 3, reals);
  const auto fresh = [&] { return Stepwise(network, values, libtorch()); };
  Stepwise kept = fresh();
  kept.forward();
  const Values dropped = kept.number(kept.output);
  kept.backward();
  Stepwise recomputed = fresh();
  recomputed.backward();
  CHECK(recomputed.number(recomputed.input_gradient) == kept.number(kept.input_gradient));
  kept.forward(false);
  CHECK_FALSE(kept.number(kept.output) == dropped);
}

TEST_CASE("forwards whose backward never comes do not push out a later one's gradients") {
  Network network = network_of({6}, {linear()});
  const LayerValues values = values_for(network.layers[0], DType::fp32, 4, reals);
  const Execute shared = libtorch();
  Memory memory;
  const Slice output = memory.add(Values(DType::fp32, values.output_gradient.size()));
  const Slice weight = memory.add(values.parameters[0]);
  const Slice bias = memory.add(values.parameters[1]);
  std::vector<Slice> inputs;
  for (int i = 0; i < 100; ++i) {
    inputs.push_back(memory.add(values.input));
    run_kernel(shared, memory, Kernel::layer_forward, {inputs.back(), weight, bias}, {output},
               {4, 1}, &network);
  }
  const Slice dy = memory.add(values.output_gradient);
  const auto gradient_of = [&](const Slice& input) {
    const Slice dx = memory.add(Values(DType::fp32, values.input.size()));
    const Slice none{dx.buffer, DType::fp32, 0, 0};
    run_kernel(shared, memory, Kernel::layer_backward, {dy, input, weight, bias}, {dx, none, none},
               {4}, &network);
    return memory.load(dx);
  };
  CHECK(gradient_of(inputs.front()) == gradient_of(inputs.back()));
}

TEST_CASE("streams of one rank may run layers at the same time") {
  Network network = network_of({32}, {layer("Linear", {{"", int64_t{32}}, {"", int64_t{32}}})});
  const LayerValues values = values_for(network.layers[0], DType::fp32, 8, integers);
  const Execute shared = libtorch();
  const LayerResult expected = run_layer(reference(), network, 0, values);
  std::vector<int> equal(4);
  std::vector<std::thread> threads;
  for (size_t thread = 0; thread < equal.size(); ++thread) {
    threads.emplace_back([&, thread] {
      // A Memory of its own each, whose slices have the same numbers: they replace each other.
      for (int turn = 0; turn < 50; ++turn) {
        equal[thread] += run_layer(shared, network, 0, values) == expected ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(equal == std::vector<int>(4, 50));
}

}  // namespace lockstep::libtorch_test::kept_graph_test
