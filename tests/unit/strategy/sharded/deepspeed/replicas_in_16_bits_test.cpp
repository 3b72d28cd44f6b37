// DeepSpeed without ZeRO in 16 bits: what each release does, and what is kept in full precision.
#include <catch2/catch.hpp>

#include "model/strategy/registry.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed.hpp"
#include "rehearsal/run/one_run.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"
#include "tests/unit/strategy/simulated.hpp"
#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;
using namespace lockstep::cli;
using Catch::Matchers::Contains;

namespace replicas_in_16_bits_test {

namespace {

std::unique_ptr<Strategy> made(DType type, const Version& release, bool is_fitted = true) {
  static const Network network = small_network();
  TrainingPlan plan;
  plan.network = &network;
  plan.activation_dtype = type;
  plan.deepspeed = release;
  plan.is_fitted = is_fitted;
  StrategyArguments arguments;
  arguments.set("stage", int64_t{0});
  return deepspeed().make(plan, arguments);
}

}  // namespace

TEST_CASE("stage 0 trains in fp16 in every release, and in bf16 from 0.18.6 on") {
  for (const Version& release : {Version{0, 8, 2}, Version{0, 16, 4}, Version{0, 19, 8}}) {
    CHECK_NOTHROW(made(DType::fp16, release));
    CHECK_NOTHROW(made(DType::fp32, release));
    CHECK_NOTHROW(made(DType::bf16, release, false));
  }
  CHECK_NOTHROW(made(DType::bf16, {0, 18, 6}));
  for (const Version& release : {Version{0, 18, 5}, Version{0, 17, 5}, Version{0, 8, 2}}) {
    CHECK_THROWS_WITH(made(DType::bf16, release), Contains("before 0.18.6"));
  }
}

// The copy is not rounded: 1 - 0.125 * 2 / 256 / 256 needs 15 bits behind the point, bf16 has 8.
TEST_CASE("what stage 0 updates in 16 bits is kept in full precision") {
  const OneRun run = run_once(
      scenario_of("version: 1\n"
                  "cluster: {preset: dgx-a100, nodes: 1}\n"
                  "model: {input: [1], layers: [{Linear: {in_features: 1, out_features: 1, bias: "
                  "false, initial: {weight: [[1]]}}}], loss: MSELoss}\n"
                  "optimizer: {SGD: {lr: 1.9073486328125e-06}}\n"
                  "data: {train: {inputs: [[1], [1]], targets: [[0], [0]], samples: 2, batch_size: "
                  "1, shuffle: false}}\n"
                  "trainer: {accelerator: gpu, devices: 2, max_steps: 1, precision: bf16-mixed, "
                  "strategy: {DeepSpeedStrategy: {stage: 0}}}\n"
                  "verify: {all_steps: true, all_ranks: true}\n"),
      RunRequest());
  REQUIRE(run.ran);
  const RankLog& log = run.preparation.log->ranks.front();
  REQUIRE(log.final_parameters.size() == 1);
  CHECK(log.final_parameters.front().number(0) == 1 - 0.125 * 2 / 256 / 256);
}

}  // namespace replicas_in_16_bits_test
