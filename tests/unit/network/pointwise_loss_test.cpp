// Losses beside MSELoss and CrossEntropyLoss.
#include <catch2/catch.hpp>
#include <cmath>

#include "model/network/arithmetic.hpp"
#include "model/network/arithmetic/pointwise_loss.hpp"
#include "tests/unit/network/slopes.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace pointwise_loss_test {

namespace {

double value_of(const PointwiseLoss& loss, const Values& input, const Values& target) {
  Values result(DType::fp64, 1);
  pointwise_loss_forward(input, target, loss, result);
  return result.number(0);
}

}  // namespace

TEST_CASE("losses follow the formulas of torch.nn") {
  const Values x = fp64({0, 3});
  const Values t = fp64({0.5, 1});
  CHECK(value_of({LossFunction::l1, 1, 2}, x, t) == Approx((0.5 + 2) / 2));
  // 0.5^2 / 2 and 2 - 1 / 2; with beta 4: 0.25 / 8 and 4 / 8.
  CHECK(value_of({LossFunction::smooth_l1, 1, 1}, x, t) == Approx(0.125 + 1.5));
  CHECK(value_of({LossFunction::smooth_l1, 4, 1}, x, t) == Approx(0.25 / 8 + 0.5));
  // 0.5^2 / 2 and 1.5 (2 - 0.75).
  CHECK(value_of({LossFunction::huber, 1.5, 1}, x, t) == Approx(0.125 + 1.875));
  // -log 0.8 for the target 1, -log(1 - 0.25) for 0, half of each logarithm for 0.5.
  CHECK(value_of({LossFunction::bce, 1, 1}, fp64({0.8, 0.25}), fp64({1, 0})) ==
        Approx(-std::log(0.8) - std::log(0.75)));
  CHECK(value_of({LossFunction::bce, 1, 1}, fp64({0}), fp64({1})) == Approx(100));
  // sigmoid(log 4) = 0.8.
  CHECK(value_of({LossFunction::bce_with_logits, 1, 1}, fp64({std::log(4)}), fp64({1})) ==
        Approx(-std::log(0.8)));
  CHECK(value_of({LossFunction::bce_with_logits, 1, 1}, fp64({-800}), fp64({1})) == Approx(800));
  CHECK(value_of({LossFunction::kl_div, 1, 1}, fp64({std::log(0.5), 2}), fp64({0.25, 0})) ==
        Approx(0.25 * std::log(0.25 / 0.5)));
  CHECK(value_of({LossFunction::kl_div_log, 1, 1}, fp64({std::log(0.5)}), fp64({std::log(0.25)})) ==
        Approx(0.25 * std::log(0.5)));
}

TEST_CASE("gradients of losses are slopes times the factor") {
  const Values x = fp64({0.2, 0.7, 0.9});
  const Values t = fp64({0.6, 0.1, 0.8});
  for (const LossFunction function :
       {LossFunction::l1, LossFunction::smooth_l1, LossFunction::huber, LossFunction::bce,
        LossFunction::bce_with_logits, LossFunction::kl_div, LossFunction::kl_div_log}) {
    INFO(static_cast<int>(function));
    const PointwiseLoss loss{function, 0.3, 3};
    Values gradient(DType::fp64, 3);
    pointwise_loss_backward(x, t, loss, 0.5, gradient);
    check_gradient(x, gradient, 1e-5, 1e-6,
                   [&](const Values& at) { return 0.5 * value_of(loss, at, t); });
  }
}

TEST_CASE("BCELoss refuses what is no probability and says which element") {
  try {
    value_of({LossFunction::bce, 1, 1}, fp64({0.5, -2}), fp64({1, 0}));
    FAIL("no error");
  } catch (const ArithmeticError& error) {
    CHECK(std::string(error.what()) ==
          "BCELoss takes probabilities, but element 1 of the output is -2");
    CHECK(error.remedy() == "end the network in a Sigmoid, or use BCEWithLogitsLoss");
  }
}

TEST_CASE("the negative logarithmic likelihood leaves ignored rows out") {
  const Values scores = fp64({-1, -2, -3, -4, -5, -6});
  const Values targets = int64({1, -100, 0});
  Values loss(DType::fp64, 1);
  nll_forward(scores, targets, 2, true, loss);
  CHECK(loss.number(0) == Approx((2.0 + 5.0) / 2));
  nll_forward(scores, targets, 2, false, loss);
  CHECK(loss.number(0) == Approx(7));
  Values gradient(DType::fp64, 6);
  nll_backward(scores, targets, 2, true, 3, gradient);
  CHECK(gradient == fp64({0, -1.5, 0, 0, -1.5, 0}));
  CHECK_THROWS_AS(nll_forward(scores, int64({1, 2, 0}), 2, true, loss), ArithmeticError);
}

}  // namespace pointwise_loss_test
