// Parameters and buffers that start as the scenario says.
#include <catch2/catch.hpp>

#include "tests/unit/io/scenario/memory_files.hpp"
#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace initial_values_test {

namespace {

std::string scenario(const std::string& model, const std::string& more = "") {
  return "version: 1\nmodel: " + model +
         "\noptimizer: {SGD: {lr: 0}}\n"
         "data: {train: {samples: 4, batch_size: 2}}\nverify: {numerics: true}\n" +
         (more.empty() ? "trainer: {accelerator: cpu, devices: 1, max_epochs: 1}\n" : more);
}

/// With a learning rate of 0 the last values are the first.
std::vector<double> first_parameters(const Ran& ran, size_t rank = 0) {
  std::vector<double> all;
  for (const Values& values : ran.log(rank).final_parameters) {
    for (int64_t i = 0; i < values.size(); ++i) {
      all.push_back(values.number(i));
    }
  }
  return all;
}

std::vector<double> first_parameters(const std::string& text) {
  return first_parameters(run_text(text, standard_strategies()));
}

std::string problem_of(const std::string& model) {
  const Preparation preparation = prepare(scenario_of(scenario(model)), standard_strategies());
  REQUIRE_FALSE(preparation.problems.empty());
  CHECK(preparation.problems.front().kind == Problem::Kind::invalid);
  return preparation.problems.front().message;
}

}  // namespace

TEST_CASE("a layer's parameters start with the values that its `initial` gives") {
  CHECK(first_parameters(scenario("{layers: [{Linear: {in_features: 2, out_features: 3, initial: "
                                  "{weight: [[1, 2], [3, 4], [5, 6]], bias: [0.5, -1, 7]}}}], "
                                  "loss: MSELoss}")) ==
        std::vector<double>{1, 2, 3, 4, 5, 6, 0.5, -1, 7});
  CHECK(first_parameters(scenario("{layers: [{Linear: [2, 1], initial: {weight: 0.25, bias: 0}}], "
                                  "loss: MSELoss}")) == std::vector<double>{0.25, 0.25, 0});
}

TEST_CASE("a model's `initial` names parameters as state_dict does and comes after the layers'") {
  CHECK(first_parameters(scenario(
            "{layers: [{Linear: [1, 1], initial: {weight: 3, bias: 4}}, {Linear: [1, 1], name: "
            "head}], loss: MSELoss, initial: {0.bias: [5], head.weight: [[6]], head.bias: 7}}")) ==
        std::vector<double>{3, 5, 6, 7});
}

TEST_CASE("every rank starts with the given values") {
  const std::string two = "trainer: {accelerator: cpu, devices: 2, strategy: ddp, max_epochs: 1}\n";
  const Ran ran = run_text(
      scenario("{layers: [{Linear: [1, 1], initial: {weight: 3, bias: 4}}], loss: MSELoss}", two),
      standard_strategies());
  CHECK(first_parameters(ran, 0) == std::vector<double>{3, 4});
  CHECK(first_parameters(ran, 1) == std::vector<double>{3, 4});
}

TEST_CASE("a given weight makes the output that the formula says") {
  // Whatever the input: 0 x + 3 and 0 x - 4.
  const Ran ran = run_text(
      scenario("{layers: [{Linear: [2, 2], initial: {weight: 0, bias: [3, -4]}}], loss: MSELoss}") +
          "program:\n  training_step:\n    - forward\n    - assert: output[0][0] == 3\n"
          "    - assert: output[1][1] == -4\n",
      standard_strategies());
  CHECK(ran.result.ends[0].message.empty());
}

TEST_CASE("initial values that do not fit their tensor are refused with both shapes") {
  const auto linear = [](const std::string& initial) {
    return problem_of("{layers: [{Linear: [2, 3], initial: " + initial + "}], loss: MSELoss}");
  };
  CHECK(linear("{weight: [[1, 2, 3], [4, 5, 6]]}") ==
        "layers[0]: the initial values have shape [2, 3] (6 numbers), but `0.weight` has shape "
        "[3, 2] (6)");
  CHECK(linear("{bias: [1, 2]}") ==
        "layers[0]: the initial values have shape [2] (2 numbers), but `0.bias` has shape [3] (3)");
  CHECK(linear("{wieght: 1}") == "layers[0]: layer `0` (linear) has no `wieght`");
  CHECK(problem_of("{layers: [{Linear: [2, 3]}], loss: MSELoss, initial: {1.weight: 0}}") ==
        "initial: the model has no parameter `1.weight`");
  CHECK(problem_of("{layers: [{Sequential: {layers: [{Linear: [2, 3]}], initial: {weight: 0}}}], "
                   "loss: MSELoss}") == "layers[0]: Sequential has no parameters of its own");
}

TEST_CASE("buffers and the parts of a TransformerEncoderLayer can be given their values") {
  const Preparation preparation = prepare(
      scenario_of(scenario(
          "{input: [2, 4], layers: [{BatchNorm1d: [2], initial: {running_mean: [1, 2]}}, "
          "{TransformerEncoderLayer: [4, 2], initial: {linear1.bias: 9}}], loss: MSELoss}")),
      standard_strategies());
  REQUIRE(preparation.network);
  CHECK(*preparation.network->layers[0].buffers[0].initial == std::vector<double>{1, 2});
  size_t given = 0;
  for (const ParameterPlace place : preparation.network->parameters()) {
    given += preparation.network->parameter(place).initial ? 1 : 0;
    if (preparation.network->parameter(place).initial) {
      CHECK(preparation.network->parameter_name(place) == "1.linear1.bias");
    }
  }
  CHECK(given == 1);
}

TEST_CASE("initial values are read from a file beside the scenario") {
  const std::string text = scenario(
      "{layers: [{Linear: [2, 3], initial: {weight: {csv: w.csv}, bias: {csv: b.csv}}}], "
      "loss: MSELoss}");
  const auto loaded = [&](const std::string& weight) {
    return load_files({{"run/s.yaml", text}, {"run/w.csv", weight}, {"run/b.csv", "7 8 9\n"}},
                      "run/s.yaml");
  };
  const LoadedScenarios good = loaded("1 2\n3 4\n5 6\n");
  REQUIRE(good.ok());
  Ran ran;
  ran.preparation = prepare(good.scenarios.front(), standard_strategies());
  ran.result = simulate(ran.preparation);
  CHECK(first_parameters(ran) == std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(good.scenarios.front().digest != loaded("1 2\n3 4\n5 7\n").scenarios.front().digest);
  const Preparation turned =
      prepare(loaded("1 2 3\n4 5 6\n").scenarios.front(), standard_strategies());
  REQUIRE_FALSE(turned.problems.empty());
  CHECK(turned.problems.front().message ==
        "layers[0]: w.csv holds 2 lines of 3 numbers, but `0.weight` has shape [3, 2]");
  CHECK(turned.problems.front().remedy == "write 3 lines of 2 numbers");
  const LoadedScenarios bad = loaded("1 2\n3 x\n5 6\n");
  REQUIRE(bad.diagnostics.size() == 1);
  CHECK(bad.diagnostics.front().place == SourcePlace{"run/w.csv", 2, 3});
  CHECK(load_files({{"run/s.yaml", text}}, "run/s.yaml").diagnostics.size() == 2);
}

TEST_CASE("lists of initial values that are uneven or no numbers are refused in the file") {
  const auto message = [](const std::string& values) {
    const LoadedScenarios loaded = load_text(
        "version: 1\nmodel: {layers: [{Linear: [2, 2], initial: {weight: " + values + "}}]}\n");
    REQUIRE_FALSE(loaded.ok());
    return loaded.diagnostics.front().message;
  };
  CHECK(message("[[1, 2], [3]]") == "the lists of `weight` differ in length or depth");
  CHECK(message("[[1, 2], 3]") == "the lists of `weight` differ in length or depth");
  CHECK_THAT(message("[[1, 2], [3, four]]"), Catch::Contains("four"));
  CHECK_THAT(message("{txt: w.txt}"), Catch::Contains("takes a number"));
}

}  // namespace initial_values_test
