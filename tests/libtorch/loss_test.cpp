#include <catch2/catch.hpp>
#include <cmath>

#include "model/core/random.hpp"
#include "model/network/arithmetic.hpp"
#include "tests/libtorch/layer_case.hpp"

namespace lockstep::libtorch_test::loss_test {

namespace {

struct LossResult {
  Values loss{};
  Values gradient{};
  bool operator==(const LossResult&) const = default;
};

LossResult run_loss(const Execute& execute, const Network& network, const Values& predictions,
                    const Values& targets, double factor) {
  Memory memory;
  const std::vector<Slice> reads{memory.add(predictions), memory.add(targets)};
  const Slice loss = memory.add(Values(DType::fp32, 1));
  const Slice gradient = memory.add(Values(predictions.dtype(), predictions.size()));
  run_kernel(execute, memory, Kernel::loss_forward, reads, {loss}, {}, &network);
  run_kernel(execute, memory, Kernel::loss_backward, reads, {gradient}, {factor}, &network);
  return {memory.load(loss), memory.load(gradient)};
}

Network ending_in(Shape output, std::string loss, std::string reduction) {
  return network_of(std::move(output), {layer("ReLU")},
                    layer(std::move(loss), {{"reduction", std::move(reduction)}}));
}

}  // namespace

TEST_CASE("an integer-valued squared error agrees with the reference bit for bit") {
  for (const std::string reduction : {"mean", "sum"}) {
    const Network network = ending_in({4}, "MSELoss", reduction);
    for (const DType dtype : {DType::fp64, DType::fp32, DType::bf16}) {
      INFO(reduction << " " << name_of(dtype));
      const Values predictions = integers(dtype, 16, 1);
      const Values targets = integers(dtype, 16, 2);
      CHECK(run_loss(libtorch(), network, predictions, targets, 0.5) ==
            run_loss(reference(), network, predictions, targets, 0.5));
    }
  }
}

TEST_CASE("cross entropy is within its rounding of the reference, ignored rows left out") {
  constexpr int64_t classes = 5;
  constexpr int64_t rows = 12;
  for (const std::string reduction : {"mean", "sum"}) {
    const Network network = ending_in({3, classes}, "CrossEntropyLoss", reduction);
    const Values scores = reals(DType::fp32, rows * classes, 1);
    Values targets(DType::int64, rows);
    for (int64_t row = 0; row < rows; ++row) {
      targets.set_integer(row, row == 4 ? -100 : row % classes);
    }
    const LossResult ours = run_loss(libtorch(), network, scores, targets, 3);
    const LossResult theirs = run_loss(reference(), network, scores, targets, 3);
    // A score less its row's maximum is at most 2 and off by 2u; an exponential by that and 2u of
    // its own; the sum of 5 by their error and gamma(5); the logarithm is at most log(5) + 2 < 4.
    const double u = unit_roundoff(DType::fp32);
    const double of_sum = 4 * u + roundings(classes, DType::fp32);
    const double of_row = of_sum + 2 * u * 4 + 2 * u;
    const double of_loss = rows * (of_row + 4 * roundings(rows + 1, DType::fp32));
    const double counted = reduction == "mean" ? rows - 1 : 1;
    CHECK(distance(ours.loss, theirs.loss) <= 2 * of_loss / counted);
    CHECK(distance(ours.gradient, theirs.gradient) <= 2 * 3 * (4 * u + of_sum + 4 * u) / counted);
    for (int64_t i = 0; i < classes; ++i) {
      CHECK(ours.gradient.number(4 * classes + i) == 0);
    }
  }
}

TEST_CASE("a target that is no class is refused in the reference's words") {
  const Network network = ending_in({3}, "CrossEntropyLoss", "mean");
  CHECK_THROWS_WITH(
      run_loss(libtorch(), network, reals(DType::fp32, 6, 1), Values::of(DType::int64, {0, 3}), 1),
      "target 3 of row 1 is none of 3 classes");
}

}  // namespace lockstep::libtorch_test::loss_test
