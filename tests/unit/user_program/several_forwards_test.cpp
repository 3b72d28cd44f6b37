// One backward through several forwards: a loss that adds up those of two batches or networks.
#include <catch2/catch.hpp>

#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace several_forwards_test {

namespace {

std::string step(const std::string& strategy, const std::string& statements,
                 const std::string& model =
                     "{input: [4], layers: [{Linear: [4, 2]}], loss: "
                     "MSELoss}") {
  return "version: 1\nseed_everything: 3\nmodel: " + model +
         "\noptimizer: {SGD: {lr: 0.125}}\n"
         "data: {train: {samples: 8, batch_size: 2}}\nverify: {numerics: true}\n"
         "trainer: {accelerator: cpu, strategy: " +
         strategy +
         ", max_epochs: 1, enable_checkpointing: false}\n"
         "program:\n  automatic_optimization: false\n  training_step:\n    - zero_grad\n" +
         statements + "    - optimizer_step\n";
}

Ran train(const std::string& text) { return run_text(text, standard_strategies()); }

std::vector<double> parameters(const Ran& ran) {
  REQUIRE(ran.result.ends[0].message.empty());
  std::vector<double> all;
  for (const Values& values : ran.log(0).final_parameters) {
    for (int64_t i = 0; i < values.size(); ++i) {
      all.push_back(values.number(i));
    }
  }
  REQUIRE_FALSE(all.empty());
  return all;
}

void check_equal(const Ran& a, const Ran& b) {
  const std::vector<double> x = parameters(a);
  const std::vector<double> y = parameters(b);
  REQUIRE(x.size() == y.size());
  for (size_t i = 0; i < x.size(); ++i) {
    CHECK(x[i] == Approx(y[i]).epsilon(1e-5).margin(1e-6));
  }
}

const std::string summed =
    "    - forward: {target: 1}\n    - let: {errD_real: loss}\n"
    "    - forward: {target: 0}\n    - let: {errD_fake: loss}\n"
    "    - let: {errD: errD_real + errD_fake}\n    - backward: errD\n";
// d(a + b) = da + db; the first stays on the rank.
const std::string apart =
    "    - no_sync: [{forward: {target: 1}}, {backward: loss}]\n"
    "    - forward: {target: 0}\n    - backward: loss\n";

}  // namespace

TEST_CASE("the backward of a sum of two losses adds their gradients") {
  for (const std::string strategy : {"auto, devices: 1", "ddp, devices: 2", "dp, devices: 1"}) {
    INFO(strategy);
    check_equal(train(step(strategy, summed)), train(step(strategy, apart)));
  }
}

TEST_CASE("a weighted sum of two losses gives each its weight") {
  const std::string weighted =
      "    - forward: {target: 1}\n    - let: {first: loss}\n"
      "    - forward: {target: 0}\n    - backward: 3 * first + loss / 2\n";
  const std::string one_by_one =
      "    - no_sync: [{forward: {target: 1}}, {backward: 3 * loss}]\n"
      "    - forward: {target: 0}\n    - backward: loss / 2\n";
  check_equal(train(step("auto, devices: 1", weighted)),
              train(step("auto, devices: 1", one_by_one)));
  check_equal(train(step("ddp, devices: 2", weighted)), train(step("ddp, devices: 2", one_by_one)));
}

TEST_CASE("losses of two networks add up and each network gets its gradients") {
  const std::string model =
      "{modules: {one: {layers: [{Linear: [4, 2]}], loss: MSELoss}, other: {layers: [{Linear: "
      "[3, 1]}], loss: MSELoss}}}";
  const std::string both =
      "    - forward: {module: one}\n    - let: {a: loss}\n    - forward: {module: other}\n"
      "    - backward: a + loss\n";
  const std::string single =
      "    - forward: {module: one}\n    - backward: loss\n    - forward: {module: other}\n"
      "    - backward: loss\n";
  check_equal(train(step("auto, devices: 1", both, model)),
              train(step("auto, devices: 1", single, model)));
  // DDP: every parameter is ready once; the first of two backwards would leave a bucket unfilled.
  CHECK_FALSE(parameters(train(step("ddp, devices: 2", both, model))).empty());
}

TEST_CASE("a sum of two losses is exchanged once") {
  const Ran once = train(step("ddp, devices: 2", summed));
  const Ran twice = train(step("ddp, devices: 2",
                               "    - forward: {target: 1}\n    - backward: loss\n"
                               "    - forward: {target: 0}\n    - backward: loss\n"));
  REQUIRE(once.result.ends[0].message.empty());
  REQUIRE(twice.result.ends[0].message.empty());
  // Two steps: one bucket each against two.
  CHECK(count(twice.result, 0, OpKind::all_reduce) - count(once.result, 0, OpKind::all_reduce) ==
        2);
}

TEST_CASE("backward may follow an earlier forward alone and then the last") {
  const std::string earlier_first =
      "    - forward: {target: 1}\n    - let: {first: loss}\n    - forward: {target: 0}\n"
      "    - backward: first\n    - backward: loss\n";
  check_equal(train(step("auto, devices: 1", earlier_first)),
              train(step("auto, devices: 1", apart)));
}

TEST_CASE("the graph of an earlier forward is gone after its backward") {
  const Ran ran = train(step("auto, devices: 1",
                             "    - forward\n    - let: {first: loss}\n    - backward: first\n"
                             "    - forward\n    - backward: first + loss\n"));
  CHECK(ran.result.ends[0].message.find("Trying to backward through the graph a second time") !=
        std::string::npos);
}

TEST_CASE("automatic optimization goes back through all that the loss is made of") {
  const auto automatic = [](const std::string& strategy, const std::string& statements) {
    return "version: 1\nseed_everything: 3\n"
           "model: {input: [4], layers: [{Linear: [4, 2]}], loss: MSELoss}\n"
           "optimizer: {SGD: {lr: 0.125}}\n"
           "data: {train: {samples: 8, batch_size: 2}}\nverify: {numerics: true}\n"
           "trainer: {accelerator: cpu, strategy: " +
           strategy +
           ", max_epochs: 1, enable_checkpointing: false}\n"
           "program:\n  training_step:\n" +
           statements;
  };
  const std::string twice =
      "    - forward: {target: 1}\n    - let: {first: loss}\n"
      "    - forward: {target: 0}\n    - let: {loss: first + loss}\n";
  for (const std::string strategy : {"auto, devices: 1", "ddp, devices: 2"}) {
    INFO(strategy);
    check_equal(train(automatic(strategy, twice)), train(step(strategy, apart)));
  }
}

}  // namespace several_forwards_test
