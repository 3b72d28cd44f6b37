// Samples that the scenario writes down.
#include <catch2/catch.hpp>

#include "tests/unit/io/scenario/memory_files.hpp"
#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace given_samples_test {

namespace {

std::string scenario(const std::string& train, const std::string& model = "",
                     const std::string& more = "") {
  return "version: 1\nmodel: " +
         (model.empty() ? "{layers: [{Linear: [2, 1], initial: {weight: [[1, 2]], bias: 0.5}}], "
                          "loss: MSELoss}"
                        : model) +
         "\noptimizer: {SGD: {lr: 0.125}}\ndata: {train: " + train +
         "}\nverify: {numerics: true}\n"
         "trainer: {accelerator: cpu, devices: 1, max_epochs: 1}\n" +
         more;
}

std::vector<double> last_parameters(const Ran& ran) {
  std::vector<double> all;
  for (const Values& values : ran.log(0).final_parameters) {
    for (int64_t i = 0; i < values.size(); ++i) {
      all.push_back(values.number(i));
    }
  }
  return all;
}

std::string problem_of(const std::string& train, const std::string& model = "") {
  const Preparation preparation =
      prepare(scenario_of(scenario(train, model)), standard_strategies());
  REQUIRE_FALSE(preparation.problems.empty());
  return preparation.problems.front().message;
}

// Of w = (1, 2) and b = 0.5: outputs 1.5, 2.5, 3.5, 0.5; errors e = 0.5, 0.5, 0.5, -3.5.
// dL/dw = 2/4 sum(e x) = (-3, 2.25), dL/db = 2/4 sum(e) = -1; times 0.125 off the first values.
const std::string four =
    "{inputs: [[1, 0], [0, 1], [1, 1], [2, -1]], targets: [[1], [2], [3], [4]], batch_size: 4}";
const std::vector<double> after_one_step{1.375, 1.71875, 0.625};

}  // namespace

TEST_CASE("a step on given inputs and targets makes the weights that the formula says") {
  const Ran ran = run_text(scenario(four), standard_strategies());
  CHECK(last_parameters(ran) == after_one_step);
}

TEST_CASE("two ranks of ddp train on given samples as one device does") {
  std::string text = scenario(four);
  text.replace(text.find("batch_size: 4"), 13, "batch_size: 2");
  text.replace(text.find("devices: 1"), 10, "devices: 2, strategy: ddp");
  CHECK(last_parameters(run_text(text, standard_strategies())) == after_one_step);
}

TEST_CASE("a file gives each sample a line") {
  const LoadedScenarios loaded = load_files(
      {{"run/s.yaml", scenario("{inputs: {csv: x.csv}, targets: {csv: y.csv}, batch_size: 4}")},
       {"run/x.csv", "1,0\n0,1\n1,1\n2,-1\n"},
       {"run/y.csv", "1\n2\n3\n4\n"}},
      "run/s.yaml");
  REQUIRE(loaded.ok());
  Ran ran;
  ran.preparation = prepare(loaded.scenarios.front(), standard_strategies());
  ran.result = simulate(ran.preparation);
  CHECK(last_parameters(ran) == after_one_step);
}

TEST_CASE("what the file holds is part of the run's digest") {
  const auto digest = [](const std::string& first) {
    return load_files({{"s.yaml", scenario("{inputs: {csv: x.csv}}")}, {"x.csv", first}}, "s.yaml")
        .scenarios.front()
        .digest;
  };
  CHECK(digest("1,2\n") != digest("1,3\n"));
}

TEST_CASE("there are as many samples as rows, or as `samples` says") {
  const auto steps = [](const std::string& more) {
    const Ran ran =
        run_text(scenario("{inputs: [[1, 0], [0, 1], [1, 1]], batch_size: 1" + more + "}"),
                 standard_strategies());
    return ran.preparation.scenario->data->train.front().samples->value;
  };
  CHECK(steps("") == 3);
  CHECK(steps(", samples: 2") == 2);
}

TEST_CASE("given classes and tokens reach embedding and cross entropy") {
  // Row 2 of the embedding is its output; the loss of equal scores is log 2 for every class.
  const Ran ran = run_text(
      scenario(
          "{inputs: [[2], [2]], targets: [[1], [0]], batch_size: 2}",
          "{input: [1], layers: [{Embedding: [3, 2], initial: {weight: [[0, 0], [5, 6], [7, 7]]"
          "}}], loss: CrossEntropyLoss}",
          "program:\n  training_step:\n    - forward\n    - assert: output[0][0][0] == 7\n"
          "    - assert: loss > 0.6931 and loss < 0.6932\n"),
      standard_strategies());
  CHECK(ran.result.ends[0].message.empty());
}

TEST_CASE("given samples that do not fit are refused") {
  CHECK(problem_of("{inputs: [[1, 0, 3]]}") ==
        "a sample of `inputs` has shape [3], but the model's has shape [2]");
  CHECK(problem_of("{inputs: [[1, 0]], targets: [1]}") ==
        "a sample of `targets` has one number, but the model's has shape [1]");
  CHECK(problem_of("{inputs: [[1, 0]], samples: 2}") == "`inputs` holds 1 of 2 samples");
  CHECK(problem_of("{inputs: [[1, 0]], batches: 2}") ==
        "`inputs` and `batches` exclude each other: samples that are written down have numbers");
  const std::string classes = "{input: [1], layers: [{Embedding: [3, 2]}], loss: CrossEntropyLoss}";
  CHECK(problem_of("{inputs: [[0], [3]]}", classes) ==
        "sample 1 of `inputs` holds 3, but a token is a whole number from 0 to 2");
  CHECK(problem_of("{targets: [[0.5]]}", classes) ==
        "sample 0 of `targets` holds 0.5, but a class is a whole number from 0 to 1");
  CHECK_THROWS_WITH(scenario_of(scenario("{inputs: 1}")),
                    Catch::Matchers::Contains("a list with one row for each sample"));
}

}  // namespace given_samples_test
