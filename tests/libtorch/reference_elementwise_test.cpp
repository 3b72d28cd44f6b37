// Activations, softmax, norms over groups, convolutions of one dimension and transposed ones, and
// the losses that compare element by element: the simulator's numbers are LibTorch's.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/libtorch/layer_case.hpp"

namespace lockstep::libtorch_test::reference_elementwise_test {

namespace {

constexpr NamedArgument positional(int64_t value) { return {"", value}; }

/// Sums of at most a few dozen numbers below 10: their rounding is below 1000 units of roundoff.
double margin(DType dtype) { return 1000 * unit_roundoff(dtype); }

void check_near(const LayerResult& ours, const LayerResult& theirs, double most) {
  CHECK(distance(ours.output, theirs.output) <= most);
  CHECK(distance(ours.input_gradient, theirs.input_gradient) <= most);
  REQUIRE(ours.gradients.size() == theirs.gradients.size());
  for (size_t i = 0; i < ours.gradients.size(); ++i) {
    INFO("parameter " << i);
    CHECK(distance(ours.gradients[i], theirs.gradients[i]) <= most);
  }
}

void compare(const Network& network) {
  for (const DType dtype : {DType::fp64, DType::fp32}) {
    INFO(name_of(network.layers[0].kind) << " " << name_of(dtype));
    const LayerValues values = values_for(network.layers[0], dtype, 3, reals);
    check_near(run_layer(libtorch(), network, 0, values),
               run_layer(reference(), network, 0, values), margin(dtype));
  }
}

void compare_exactly(const Network& network) {
  for (const DType dtype : {DType::fp64, DType::fp32, DType::bf16, DType::fp16}) {
    INFO(name_of(network.layers[0].kind) << " " << name_of(dtype));
    const LayerValues values = values_for(network.layers[0], dtype, 2, integers);
    CHECK(run_layer(libtorch(), network, 0, values) == run_layer(reference(), network, 0, values));
  }
}

Network with_loss(std::string loss, std::vector<NamedArgument> arguments) {
  return network_of({2, 3}, {layer("ReLU")}, layer(std::move(loss), std::move(arguments)));
}

struct LossResult {
  Values loss{};
  Values gradient{};
};

LossResult run_loss(const Execute& execute, const Network& network, const Values& predictions,
                    const Values& targets) {
  Memory memory;
  const std::vector<Slice> reads{memory.add(predictions), memory.add(targets)};
  const Slice loss = memory.add(Values(predictions.dtype(), 1));
  const Slice gradient = memory.add(Values(predictions.dtype(), predictions.size()));
  run_kernel(execute, memory, Kernel::loss_forward, reads, {loss}, {}, &network);
  run_kernel(execute, memory, Kernel::loss_backward, reads, {gradient}, {0.5}, &network);
  return {memory.load(loss), memory.load(gradient)};
}

void compare_loss(const Network& network, const Values& predictions, const Values& targets) {
  INFO(name_of(network.loss.kind) << " " << name_of(predictions.dtype()));
  const LossResult ours = run_loss(libtorch(), network, predictions, targets);
  const LossResult theirs = run_loss(reference(), network, predictions, targets);
  CHECK(distance(ours.loss, theirs.loss) <= margin(predictions.dtype()));
  CHECK(distance(ours.gradient, theirs.gradient) <= margin(predictions.dtype()));
}

/// Numbers in (0, 1), far enough from both for the slope of a logarithm.
Values probabilities(DType dtype, int64_t elements, uint64_t key) {
  Values values = reals(dtype, elements, key);
  for (int64_t i = 0; i < elements; ++i) {
    values.set(i, 0.5 + 0.4 * values.number(i));
  }
  return values;
}

}  // namespace

TEST_CASE("activations and softmax are LibTorch's") {
  compare(network_of({5}, {layer("LeakyReLU", {{"", 0.2}})}));
  compare(network_of({5}, {layer("SiLU")}));
  compare(network_of({5}, {layer("Sigmoid")}));
  compare(network_of({5}, {layer("Tanh")}));
  compare(network_of({5}, {layer("ReLU6")}));
  compare(network_of({5}, {layer("Hardswish")}));
  compare(network_of({5}, {layer("Hardsigmoid")}));
  compare(network_of({2, 5}, {layer("Softmax", {positional(-1)})}));
  compare(network_of({2, 5}, {layer("Softmax", {positional(1)})}));
  compare(network_of({3, 2, 4}, {layer("Softmax", {positional(2)})}));
  compare_exactly(network_of({2, 5}, {layer("Identity")}));
}

TEST_CASE("group norm and RMS norm are LibTorch's") {
  compare(network_of({6, 2, 3}, {layer("GroupNorm", {positional(3), positional(6)})}));
  compare(network_of({4, 5}, {layer("GroupNorm", {positional(2), positional(4), {"eps", 0.01}})}));
  compare(
      network_of({4, 5}, {layer("GroupNorm", {positional(1), positional(4), {"affine", false}})}));
  compare(network_of({2, 4}, {layer("RMSNorm", {positional(4)})}));
  compare(network_of({2, 4}, {layer("RMSNorm", {{"", std::vector<int64_t>{2, 4}}, {"eps", 0.5}})}));
  compare(network_of({2, 4}, {layer("RMSNorm", {positional(4), {"elementwise_affine", false}})}));
  compare(network_of({2, 2, 2, 3}, {layer("BatchNorm3d", {positional(2)})}));
}

TEST_CASE("convolutions of one dimension and transposed ones agree bit for bit on whole numbers") {
  compare_exactly(network_of({4, 9}, {layer("Conv1d", {positional(4),
                                                       positional(6),
                                                       {"kernel_size", int64_t{3}},
                                                       {"stride", std::vector<int64_t>{2}},
                                                       {"padding", int64_t{1}},
                                                       {"dilation", int64_t{2}},
                                                       {"groups", int64_t{2}}})}));
  compare_exactly(network_of(
      {2, 5}, {layer("Conv1d", {positional(2), positional(3), positional(1), {"bias", false}})}));
  compare_exactly(network_of(
      {4, 3, 5}, {layer("ConvTranspose2d", {positional(4),
                                            positional(6),
                                            {"kernel_size", std::vector<int64_t>{3, 2}},
                                            {"stride", std::vector<int64_t>{2, 3}},
                                            {"padding", std::vector<int64_t>{1, 0}},
                                            {"output_padding", std::vector<int64_t>{1, 2}},
                                            {"dilation", std::vector<int64_t>{1, 2}},
                                            {"groups", int64_t{2}}})}));
  compare_exactly(network_of({2, 2, 2}, {layer("ConvTranspose2d", {positional(2),
                                                                   positional(1),
                                                                   positional(4),
                                                                   positional(2),
                                                                   positional(1),
                                                                   {"bias", false}})}));
}

TEST_CASE("losses that compare element by element are LibTorch's in every reduction") {
  for (const DType dtype : {DType::fp64, DType::fp32}) {
    const Values x = reals(dtype, 12, 1);
    const Values t = reals(dtype, 12, 2);
    const Values p = probabilities(dtype, 12, 3);
    const Values q = probabilities(dtype, 12, 4);
    for (const std::string reduction : {"mean", "sum"}) {
      const NamedArgument how{"reduction", reduction};
      compare_loss(with_loss("L1Loss", {how}), x, t);
      compare_loss(with_loss("SmoothL1Loss", {how, {"beta", 0.5}}), x, t);
      compare_loss(with_loss("SmoothL1Loss", {how, {"beta", 0.0}}), x, t);
      compare_loss(with_loss("HuberLoss", {how, {"delta", 0.5}}), x, t);
      compare_loss(with_loss("BCELoss", {how}), p, q);
      compare_loss(with_loss("BCEWithLogitsLoss", {how}), x, q);
      compare_loss(with_loss("KLDivLoss", {how}), x, q);
      compare_loss(with_loss("KLDivLoss", {how, {"log_target", true}}), x, t);
    }
    compare_loss(with_loss("KLDivLoss", {{"reduction", std::string("batchmean")}}), x, q);
  }
}

TEST_CASE("the negative logarithmic likelihood is LibTorch's with ignored rows left out") {
  for (const std::string reduction : {"mean", "sum"}) {
    const Network network = with_loss("NLLLoss", {{"reduction", reduction}});
    Values targets(DType::int64, 4);
    for (int64_t row = 0; row < 4; ++row) {
      targets.set_integer(row, row == 1 ? -100 : row % 3);
    }
    compare_loss(network, reals(DType::fp64, 12, 1), targets);
  }
}

}  // namespace lockstep::libtorch_test::reference_elementwise_test
