// Averagers of models against closed forms: what they leave follows from runs without them.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "model/strategy/registry.hpp"
#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace averaging_test {

namespace {

using Numbers = std::vector<double>;

constexpr double inner_rate = 0.25;

/// Inner steps of SGD on two ranks, each with samples of its own.
std::string training(const std::string& strategy, int steps, double rate = inner_rate,
                     double momentum = 0, int ranks = 2) {
  return fmt::format(
      "version: 1\ncluster: {{preset: dgx-a100, nodes: 1}}\n"
      "model: {{input: [3], layers: [{{Linear: [3, 2]}}], loss: MSELoss}}\n"
      "optimizer: {{SGD: {{lr: {}, momentum: {}}}}}\n"
      "data: {{train: {{samples: 64, batch_size: 2}}}}\n"
      "trainer: {{accelerator: gpu, devices: {}, strategy: {}, max_epochs: 1, limit_train_batches: "
      "{}, num_sanity_val_steps: 0, enable_checkpointing: false}}\n",
      rate, momentum, ranks, strategy, steps);
}

std::string alone() { return "{DDPStrategy: {ddp_comm_hook: noop_hook}}"; }

std::string outer(int period, const std::string& arguments) {
  return fmt::format(
      "{{DDPStrategy: {{ddp_comm_hook: noop_hook, model_averaging_period: {}, outer_optimizer: "
      "{{{}}}}}}}",
      period, arguments);
}

std::string levels(const std::string& sizes) {
  return "{DDPStrategy: {ddp_comm_hook: noop_hook, model_averager: {HierarchicalModelAverager: "
         "{period_group_size_dict: " +
         sizes + "}}}}";
}

Numbers numbers_of(const Ran& ran, size_t rank) {
  Numbers all;
  for (const Values& values : ran.log(rank).final_parameters) {
    for (int64_t index = 0; index < values.size(); ++index) {
      all.push_back(values.number(index));
    }
  }
  REQUIRE(all.size() == 8);
  return all;
}

Numbers parameters(const std::string& text, size_t rank = 0) {
  return numbers_of(run_text(text, standard_strategies()), rank);
}

/// Those that every run begins with: a step with a rate of 0 changes nothing.
Numbers initial() { return parameters(training("ddp", 1, 0)); }

Numbers mean_of_ranks(const std::string& text, size_t first, size_t ranks) {
  const Ran ran = run_text(text, standard_strategies());
  Numbers mean(8);
  for (size_t rank = first; rank < first + ranks; ++rank) {
    const Numbers own = numbers_of(ran, rank);
    for (size_t index = 0; index < own.size(); ++index) {
      mean[index] += own[index] / static_cast<double>(ranks);
    }
  }
  return mean;
}

void check_near(const Numbers& found, const Numbers& expected) {
  REQUIRE(found.size() == expected.size());
  for (size_t index = 0; index < found.size(); ++index) {
    INFO(index);
    CHECK(found[index] == Approx(expected[index]).margin(1e-6));
  }
}

}  // namespace

TEST_CASE("an outer step at rate 1 without momentum leaves the mean of the replicas") {
  const Numbers first = parameters(training(alone(), 3), 0);
  const Numbers second = parameters(training(alone(), 3), 1);
  REQUIRE(std::abs(first[0] - second[0]) > 1e-4);
  const std::string text = training(outer(3, "lr: 1.0, momentum: 0.0"), 3);
  check_near(parameters(text, 0), mean_of_ranks(training(alone(), 3), 0, 2));
  CHECK(parameters(text, 0) == parameters(text, 1));
}

// With one inner step of SGD the pseudo-gradient is the inner rate times the mean gradient.
TEST_CASE("outer steps behind every inner step of SGD are those of DDP at the product of rates") {
  const auto ddp = [](double rate, double momentum) {
    return parameters(training("ddp", 5, rate, momentum));
  };
  check_near(parameters(training(outer(1, "lr: 0.5, momentum: 0.0"), 5)), ddp(0.5 * inner_rate, 0));
  check_near(parameters(training(outer(1, "lr: 0.5, momentum: 0.75, nesterov: false"), 5)),
             ddp(0.5 * inner_rate, 0.75));
}

// torch.optim.SGD: buffer = momentum * buffer + gradient; step by gradient + momentum * buffer. In
// the first step the buffer is the gradient.
TEST_CASE("the first step of Nesterov's momentum is 1 + momentum times that of plain SGD") {
  const Numbers start = initial();
  const Numbers mean = mean_of_ranks(training(alone(), 2), 0, 2);
  Numbers expected;
  for (size_t index = 0; index < start.size(); ++index) {
    expected.push_back(start[index] - 0.5 * (1 + 0.75) * (start[index] - mean[index]));
  }
  check_near(parameters(training(outer(2, "lr: 0.5, momentum: 0.75, nesterov: true"), 2)),
             expected);
}

TEST_CASE("between outer steps ranks go on alone, from where the outer step left all") {
  const Ran ran = run_text(training(outer(2, "lr: 1.0, momentum: 0.0"), 3), standard_strategies());
  CHECK_FALSE(numbers_of(ran, 0) == numbers_of(ran, 1));
  CHECK_FALSE(numbers_of(ran, 0) == parameters(training(alone(), 3), 0));
}

// Steps count from 0: of two steps the first is due for all, of three the last for pairs.
TEST_CASE("of a hierarchy the group with the longest period that is due averages") {
  const std::string strategy = levels("{2: 2, 4: 4}");
  const auto text = [](const std::string& name, int steps) {
    return training(name, steps, inner_rate, 0, 4);
  };
  const Ran one = run_text(text(strategy, 1), standard_strategies());
  for (size_t rank = 0; rank < 4; ++rank) {
    check_near(numbers_of(one, rank), mean_of_ranks(text(alone(), 1), 0, 4));
  }
  const Ran two = run_text(text(strategy, 2), standard_strategies());
  CHECK_FALSE(numbers_of(two, 0) == numbers_of(two, 1));
  const Ran three = run_text(text(strategy, 3), standard_strategies());
  CHECK(numbers_of(three, 0) == numbers_of(three, 1));
  CHECK(numbers_of(three, 2) == numbers_of(three, 3));
  CHECK_FALSE(numbers_of(three, 0) == numbers_of(three, 2));
  const Ran five = run_text(text(strategy, 5), standard_strategies());
  CHECK(numbers_of(five, 0) == numbers_of(five, 3));
}

TEST_CASE("warm-up steps of a hierarchy count, and average nothing") {
  const std::string strategy =
      "{DDPStrategy: {ddp_comm_hook: noop_hook, model_averager: {HierarchicalModelAverager: "
      "{period_group_size_dict: {2: 2}, warmup_steps: 1}}}}";
  CHECK_FALSE(parameters(training(strategy, 2), 0) == parameters(training(strategy, 2), 1));
  CHECK(parameters(training(strategy, 3), 0) == parameters(training(strategy, 3), 1));
}

}  // namespace averaging_test
