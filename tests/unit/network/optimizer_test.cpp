#include "model/network/arithmetic/optimizer.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <utility>
#include <vector>

#include "model/network/arithmetic/initial_values.hpp"
#include "model/network/arithmetic/tensor.hpp"
#include "model/network/execute_update.hpp"
#include "model/network/optimizer/optimizer_rule.hpp"

using namespace lockstep;

namespace optimizer_test {

namespace {
Values fp32(std::initializer_list<double> numbers) { return Values::of(DType::fp32, numbers); }
Values fp64(std::initializer_list<double> numbers) { return Values::of(DType::fp64, numbers); }
}  // namespace

TEST_CASE("plain SGD steps against the gradient") {
  Values parameter = fp32({8, -4});
  sgd_step({.lr = 0.5}, 1, fp32({2, 4}), nullptr, parameter);
  CHECK(parameter == fp32({7, -6}));
}

TEST_CASE("weight decay adds to the gradient before momentum") {
  // d = 2 + 0.5 * 8 = 6; velocity 6; 8 - 0.5 * 6 = 5.
  // then d = 2 + 0.5 * 5 = 4.5; velocity 0.5 * 6 + 4.5 = 7.5; 5 - 3.75 = 1.25
  const SgdOptions options{.lr = 0.5, .momentum = 0.5, .weight_decay = 0.5};
  Values parameter = fp32({8});
  Values velocity(DType::fp32, 1);
  sgd_step(options, 1, fp32({2}), &velocity, parameter);
  CHECK(parameter == fp32({5}));
  sgd_step(options, 2, fp32({2}), &velocity, parameter);
  CHECK(velocity == fp32({7.5}));
  CHECK(parameter == fp32({1.25}));
}

TEST_CASE("dampening spares the first step and Nesterov looks ahead") {
  // Step 1: velocity 4 (undamped); step 2: 0.5 * 4 + 0.75 * 4 = 5.
  SgdOptions options{.lr = 1, .momentum = 0.5, .dampening = 0.25};
  Values parameter = fp32({0});
  Values velocity(DType::fp32, 1);
  sgd_step(options, 1, fp32({4}), &velocity, parameter);
  CHECK(parameter == fp32({-4}));
  sgd_step(options, 2, fp32({4}), &velocity, parameter);
  CHECK(parameter == fp32({-9}));
  // Nesterov: direction 4 + 0.5 * 4 = 6.
  options = {.lr = 1, .momentum = 0.5, .nesterov = true};
  parameter = fp32({0});
  velocity = fp32({0});
  sgd_step(options, 1, fp32({4}), &velocity, parameter);
  CHECK(parameter == fp32({-6}));
}

TEST_CASE("Adam under a constant gradient moves by lr at every step") {
  // Bias correction makes the moments g and g^2 exactly, so each step is lr g / (|g| + eps).
  Values parameter = fp64({1, 1});
  Values first(DType::fp64, 2);
  Values second(DType::fp64, 2);
  const AdamOptions options{.lr = 0.125, .eps = 0};
  for (int64_t step = 1; step <= 3; ++step) {
    adam_step(options, step, fp64({3, -5}), first, second, parameter);
  }
  CHECK(parameter.number(0) == Approx(1 - 3 * 0.125).epsilon(1e-12));
  CHECK(parameter.number(1) == Approx(1 + 3 * 0.125).epsilon(1e-12));
}

TEST_CASE("AdamW shrinks the parameter, Adam adds the decay to the gradient") {
  Values first(DType::fp64, 1);
  Values second(DType::fp64, 1);
  Values decoupled = fp64({8});
  adam_step({.lr = 0.5, .weight_decay = 0.25, .decoupled_weight_decay = true}, 1, fp64({0}), first,
            second, decoupled);
  CHECK(decoupled == fp64({7}));  // 8 (1 - 0.5 * 0.25), no gradient
  Values coupled = fp64({8});
  adam_step({.lr = 0.5, .eps = 0, .weight_decay = 0.25}, 1, fp64({0}), first, second, coupled);
  CHECK(coupled.number(0) == Approx(7.5).epsilon(1e-12));  // the decay alone is a gradient of 2
}

// multi_tensor_adam.cu of DeepSpeed without corrections: p -= lr (m / (root(v) + eps) + decay p),
// and of the other mode the decay is in the gradient.
TEST_CASE("DeepSpeed's Adam without bias_correction goes by its moments as they are") {
  const auto after_two_steps = [](OptimizerKind kind, double decay, std::pair<double, double> g) {
    OptimizerSettings settings = rule_of(kind).defaults();
    settings.lr = 0.5;
    settings.beta1 = 0.5;
    settings.beta2 = 0.75;
    settings.eps = 0;
    settings.weight_decay = decay;
    settings.corrects_bias = false;
    Values first(DType::fp64, 1);
    Values second(DType::fp64, 1);
    Values parameter = fp64({8});
    std::vector<double> after;
    for (int64_t step = 1; step <= 2; ++step) {
      const std::vector<double> given = rule_of(kind).scalars(settings, {step, {}}, {1});
      adam_step({given[0], given[1], given[2], given[3], given[4], given[6] != 0, given[7] != 0},
                static_cast<int64_t>(given[5]), fp64({step == 1 ? g.first : g.second}), first,
                second, parameter);
      after.push_back(parameter.number(0));
    }
    return after;
  };
  // m is 2 and v is 4 after each step, so m / root(v) = 1: 8 - 0.5 (1 + 0.25 * 8) = 6.5, and
  // 6.5 - 0.5 (1 + 0.25 * 6.5) = 5.1875.
  CHECK(after_two_steps(OptimizerKind::adamw, 0.25, {4, 2}) == std::vector<double>{6.5, 5.1875});
  // Gradients of 4 and 2 with their decay of 0.25 * 8 = 2 and 0.25 * 7.5 = 1.875.
  CHECK(after_two_steps(OptimizerKind::adam, 0.25, {2, 0.125}) == std::vector<double>{7.5, 7});
}

// cpu_adagrad.cpp: the square of 3 + 0.5 * 2 = 4 is the sum, and 3 / root(16) the step.
TEST_CASE("DeepSpeedCPUAdagrad divides the gradient without its decay") {
  OptimizerSettings settings = rule_of(OptimizerKind::adagrad).defaults();
  settings.lr = 1;
  settings.eps = 0;
  settings.weight_decay = 0.5;
  settings.is_on_host = true;
  const UpdateCall call =
      update_call_from(rule_of(OptimizerKind::adagrad).scalars(settings, {1, {}}, {1}));
  std::vector<Values> sum{fp64({0})};
  Values parameter = fp64({2});
  update_values(call, fp64({3}), sum, parameter, nullptr);
  CHECK(sum[0] == fp64({16}));
  CHECK(parameter == fp64({1.25}));
}

TEST_CASE("Adam's ratio is one at first and grows where few gradients fill its second moment") {
  const AdamOptions options{};
  CHECK(largest_adam_ratio(options, 1) == Approx(1).epsilon(1e-12));
  // Two steps, the second gradient alone: m = 0.1 g / 0.19, v = 0.001 g^2 / 0.001999, a ratio of
  // 0.7442. The worst history is no less, and Cauchy and Schwarz say what it is:
  // (0.1 / 0.19) sqrt((1 + 0.81 / 0.999) 0.001999 / 0.001) = 1.00136.
  CHECK(largest_adam_ratio(options, 2) == Approx(1.00136).epsilon(1e-5));
  // Many: 0.1 / sqrt(0.001) / sqrt(1 - 0.81 / 0.999), corrected by nothing any more.
  CHECK(largest_adam_ratio(options, 100'000) == Approx(7.2703).epsilon(1e-4));
  CHECK(std::isinf(largest_adam_ratio({.beta1 = 0.9, .beta2 = 0}, 2)));
}

TEST_CASE(
    "a gradient's error moves Adam by its share of the second moment's root, or a whole step") {
  // Step 1: v = 0.001 g^2 corrected is g^2, the ratio is one, so 2 lr d / (|g| + eps).
  const AdamOptions options{.lr = 0.125, .eps = 0};
  Values first(DType::fp64, 2);
  Values second(DType::fp64, 2);
  Values parameter = fp64({1, 1});
  adam_step(options, 1, fp64({4, 0x1p-20}), first, second, parameter);
  UpdateSensitivity sensitivity;
  add_adam_sensitivity(options, 1, 4, second, sensitivity);
  CHECK(sensitivity.distance(0, 0x1p-10) == Approx(0.25 * 0x1p-10).epsilon(1e-6));
  CHECK(sensitivity.distance(1, 0x1p-30) == Approx(0.25 * 4 * 0x1p-10).epsilon(1e-6));
  CHECK(sensitivity.distance(1, 0x1p-10) == 0.25);  // from one side to the other
  UpdateSensitivity backwards;  // DeepSpeed's LRRangeTest may step with a rate below 0
  add_adam_sensitivity({.lr = -0.125, .eps = 0}, 1, 4, second, backwards);
  CHECK(backwards.distance(1, 0x1p-10) == 0.25);
}

TEST_CASE("a 16-bit parameter is rounded once per step") {
  Values parameter = Values::of(DType::bf16, {256});
  sgd_step({.lr = 1}, 1, Values::of(DType::bf16, {1}), nullptr, parameter);
  CHECK(parameter.number(0) == 255);
  parameter = Values::of(DType::bf16, {256});
  sgd_step({.lr = 1}, 1, Values::of(DType::bf16, {-1}), nullptr, parameter);
  CHECK(parameter.number(0) == 256);  // 257 is half-way: to even
}

TEST_CASE("pack lays parts in order and pads with zeros, unpack reverses it") {
  const Values a = fp32({1, 2});
  const Values b = fp32({3});
  const Values* parts[] = {&a, &b};
  Values flat = fp32({9, 9, 9, 9, 9});
  pack(parts, flat);
  CHECK(flat == fp32({1, 2, 3, 0, 0}));
  Values c(DType::fp32, 2);
  Values d(DType::fp32, 1);
  Values* into[] = {&c, &d};
  unpack(flat, into);
  CHECK(c == a);
  CHECK(d == b);
}

TEST_CASE("a cast rounds to the target type") {
  Values narrow(DType::bf16, 2);
  cast(fp32({257, 1.5}), narrow);
  CHECK(narrow == Values::of(DType::bf16, {256, 1.5}));
  Values integers(DType::int64, 2);
  cast(fp32({2.75, -2.75}), integers);
  CHECK(integers == Values::of(DType::int64, {2, -2}));
  Values sum(DType::fp32, 2);
  add(fp32({1, 2}), fp32({10, 20}), sum);
  CHECK(sum == fp32({11, 22}));
}

TEST_CASE("initial values depend on key and index alone") {
  const Values few = integer_initial_values(DType::fp32, 10, 7);
  const Values many = integer_initial_values(DType::fp32, 1000, 7);
  CHECK(many.slice(0, 10) == few);
  CHECK_FALSE(integer_initial_values(DType::fp32, 10, 8) == few);
  std::array<int, 5> seen{};
  for (int64_t i = 0; i < many.size(); ++i) {
    REQUIRE(std::abs(many.number(i)) <= 2);
    seen.at(static_cast<size_t>(many.integer(i) + 2)) += 1;
  }
  for (const int count : seen) {
    CHECK(count > 100);  // 200 expected, 8 standard deviations
  }
}

TEST_CASE("a linear layer starts within one over the root of its fan-in, a norm at one and zero") {
  Layer linear{.kind = LayerKind::linear, .parameters = {{"weight", {4, 16}}, {"bias", {4}}}};
  for (const size_t tensor : {size_t{0}, size_t{1}}) {
    const Values values =
        initial_parameter(linear, tensor, DType::fp32, Initialisation::uniform_fan_in, 3);
    double greatest = 0;
    for (int64_t i = 0; i < values.size(); ++i) {
      greatest = std::max(greatest, std::abs(values.number(i)));
    }
    CHECK(greatest <= 0.25);
    CHECK(greatest > 0.1);
  }
  Layer norm{.kind = LayerKind::batch_norm, .parameters = {{"weight", {2}}, {"bias", {2}}}};
  CHECK(initial_parameter(norm, 0, DType::fp32, Initialisation::small_integers, 3) == fp32({1, 1}));
  CHECK(initial_parameter(norm, 1, DType::fp32, Initialisation::small_integers, 3) == fp32({0, 0}));
  CHECK(initial_buffer({"running_var", {2}}, DType::fp32) == fp32({1, 1}));
}

}  // namespace optimizer_test
