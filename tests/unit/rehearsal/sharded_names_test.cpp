// Names and remedies of sharded strategies, as users write them.
#include <catch2/catch.hpp>

#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace sharded_names_test {
using cli::Rehearsal;

namespace {

Rehearsal trained(const std::string& strategy, int devices, const std::string& more = "") {
  return std::move(rehearsed("version: 1\ncluster: {preset: dgx-a100, nodes: 1}\n"
                             "model: {input: [8], layers: [{Linear: [8, 4]}], loss: MSELoss}\n"
                             "trainer: {accelerator: gpu, devices: " +
                             std::to_string(devices) + ", strategy: " + strategy +
                             ", max_epochs: 1, num_sanity_val_steps: 0, limit_val_batches: 0}\n"
                             "data: {train: {samples: 32, batch_size: 4}}\n" +
                             more)
                       .front()
                       .result);
}

const std::string fsdp2 =
    "{ModelParallelStrategy: {tensor_parallel_size: 1, data_parallel_size: 2, fully_shard: "
    "{modules: [Linear]}}}";

}  // namespace

TEST_CASE("strategies have the names in output that scenarios give them") {
  CHECK(trained("single_device", 1).run.preparation.strategy == "single_device");
  CHECK(trained(fsdp2, 2).run.preparation.strategy == "ModelParallelStrategy");
  CHECK(trained("deepspeed_stage_2", 2).run.preparation.strategy == "deepspeed_stage_2");
  CHECK(trained("fsdp", 2).run.preparation.strategy == "fsdp");
}

TEST_CASE("what a script calls to read a sharded parameter is that of its strategy") {
  const std::string reads =
      "program: {on_train_epoch_end: [{assert: \"sum(parameter('0.weight')) < 1000\"}]}\n";
  for (const auto& [strategy, calls] : std::vector<std::pair<std::string, std::string>>{
           {"fsdp", "inside of summon_full_params, on all ranks"},
           {fsdp2, "unshard()"},
           {"{DeepSpeedStrategy: {config: {zero_allow_untested_optimizer: true, zero_optimization: "
            "{stage: 3, stage3_param_persistence_threshold: 0}}}}",
            "deepspeed.zero.GatheredParameters"}}) {
    INFO(strategy);
    const Rehearsal ran = trained(strategy, 2, reads);
    REQUIRE_FALSE(ran.findings.empty());
    std::string fix;
    for (const std::string& line : ran.findings.front().fix) {
      fix += line;
    }
    CHECK(fix.find(calls) != std::string::npos);
    const bool has_statement = strategy == "fsdp";
    CHECK((fix.find("a scenario has no statement") == std::string::npos) == has_statement);
  }
}

// The wrapper's forward calls training_step: nothing can be summoned there.
TEST_CASE("in a step the remedy for a sharded parameter is to read it in another hook") {
  const Rehearsal ran = trained(
      "{FSDPStrategy: {auto_wrap_policy: [Linear]}}", 2,
      "program: {training_step: [forward, {let: {whole: \"sum(parameter('0.weight'))\"}}]}\n");
  REQUIRE_FALSE(ran.findings.empty());
  std::string fix;
  for (const std::string& line : ran.findings.front().fix) {
    fix += line;
  }
  CHECK(fix.find("in a hook that is no step, such as on_train_batch_end") != std::string::npos);
}

}  // namespace sharded_names_test
