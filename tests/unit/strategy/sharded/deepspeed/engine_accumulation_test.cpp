// Accumulation that DeepSpeed's engine counts, against values that Lightning 2.6.6 and DeepSpeed
// 0.16.4 gave on two ranks: one weight, whose gradient in each micro-batch is the sample.
#include <catch2/catch.hpp>

#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace engine_accumulation_test {

namespace {

Ran trained(const std::string& strategy, const std::string& lr, const std::string& program = "",
            const std::string& optimizer = "SGD") {
  Ran ran = run_text(
      "version: 1\nmodel: {input: [1], layers: [{Linear: {in_features: 1, out_features: 1, bias: "
      "false}}], loss: MSELoss}\noptimizer: {" +
          optimizer + ": {lr: " + lr +
          "}}\ntrainer: {accelerator: gpu, devices: 2, max_epochs: 3, accumulate_grad_batches: 3, "
          "enable_checkpointing: false, num_sanity_val_steps: 0, use_distributed_sampler: false, "
          "strategy: " +
          strategy +
          "}\ndata: {train: {batch_size: 1, shuffle: false, inputs: [[1], [2], [4], [8]], targets: "
          "[[0], [0], [0], [0]]}}\nprogram:\n"
          "  training_step: [forward, {let: {loss: mean(output)}}]\n" +
          program,
      standard_strategies());
  REQUIRE(ran.result.ends[0].message == "");
  return ran;
}

double weight_of(const Ran& ran) { return ran.log(0).final_parameters.at(0).number(0); }

// By how much the weight has gone down.
double change(const std::string& strategy) {
  return weight_of(trained(strategy, "0.0")) - weight_of(trained(strategy, "1.0"));
}

}  // namespace

// Lightning empties gradients before its windows of an epoch: (1 + 2 + 4), (1 + 2), 1 and 8, each
// divided by 3 twice.
TEST_CASE("what an epoch leaves over is lost where zero_grad empties it") {
  for (const char* strategy : {"{DeepSpeedStrategy: {zero_optimization: false}}",
                               "deepspeed_stage_1", "deepspeed_stage_3"}) {
    INFO(strategy);
    CHECK(change(strategy) == Approx(19.0 / 9).epsilon(1e-6));
  }
}

// (1 + 2 + 4), (8 + 1 + 2), (4 + 8 + 1), (2 + 4 + 8): reduced gradients are out of its reach.
TEST_CASE("what an epoch leaves over goes into the next at stage 2") {
  CHECK(change("deepspeed_stage_2") == Approx(45.0 / 9).epsilon(1e-6));
}

TEST_CASE("Lightning counts steps by its own windows, and calls hooks of steps in every batch") {
  const Ran ran = trained("deepspeed_stage_2", "1.0",
                          "  on_before_optimizer_step: [{append: {self.seen: batch_idx}}]\n"
                          "  on_before_zero_grad: [{append: {self.emptied: batch_idx}}]\n"
                          "  on_train_end: [{assert: len(self.seen) == 12}, {assert: "
                          "\"self.emptied == [0, 3, 0, 3, 0, 3]\"}]\n");
  for (const StatementFinding& finding : ran.log(0).findings) {
    INFO(finding.message);
    CHECK(finding.code == "LS312");  // the lists live through all epochs, on purpose
  }
  CHECK(ran.log(0).steps == 3);
  int64_t updates = 0;
  for (const WeightUpdate& update : ran.log(0).weight_updates) {
    updates += update.times;
  }
  CHECK(updates == 4);
}

// Each of four steps sends the weight of two ranks once behind its last micro-batch, and its norm.
TEST_CASE("stage 1 reduces where the engine steps, stage 2 in every micro-batch") {
  const auto reductions = [](const std::string& strategy) {
    return count(trained(strategy, "1.0").result, 0, OpKind::all_reduce);
  };
  CHECK(reductions("deepspeed_stage_2") - reductions("deepspeed_stage_1") == 12 - 4);
}

TEST_CASE("who trains with Adam is not told to use Adam") {
  const auto remedy = [](const std::string& optimizer) {
    const Ran ran = trained("deepspeed_stage_2", "0.1", "", optimizer);
    return ran.log(0).known_differences.at(0).remedy;
  };
  CHECK(remedy("SGD").find("or use Adam") != std::string::npos);
  CHECK(remedy("AdamW").find("Adam") == std::string::npos);
  CHECK(remedy("AdamW").find("accumulate by hand") == 0);
}

}  // namespace engine_accumulation_test
