// What `run` proposes where no batch fits: strategies, each of which it has tried.
#include "tests/unit/rehearsal/measure/advised.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace strategy_advice_test {

namespace {

/// A proposal, as a scenario has it.
struct Written {
  std::string strategy;
  std::string optimizer = "AdamW";
};
Written written(const std::string& proposal) {
  const std::string between = " with optimizer: ";
  const size_t at = proposal.find(between);
  return at == std::string::npos
             ? Written{proposal}
             : Written{proposal.substr(0, at), proposal.substr(at + between.size())};
}

// 8 Linear of 1024 x 1024 without bias: 8 Mi parameters. Under ddp and AdamW weights, gradients,
// buckets and moments are 20 bytes for each, 160 MiB.
std::string training(const std::string& memory, const std::string& strategy) {
  return "version: 1\ncluster: {preset: dgx-a100, nodes: 1, gpu: {memory: " + memory + R"yaml(}}
model:
  input: [1024]
  layers: [{repeat: 8, layers: [{Linear: {in_features: 1024, out_features: 1024, bias: false}}]}]
  loss: MSELoss
optimizer: AdamW
data: {train: {samples: 64, batch_size: 1}}
verify: {numerics: false}
trainer: {accelerator: gpu, devices: 8, max_steps: 3, strategy: )yaml" +
         strategy + "}\n";
}

const Finding& lack(const Rehearsal& rehearsal) {
  const auto found = std::ranges::find(rehearsal.findings, "LS401", &Finding::code);
  REQUIRE(found != rehearsal.findings.end());
  return *found;
}

std::string fix_of(const Rehearsal& rehearsal) {
  std::string text;
  for (const std::string& line : lack(rehearsal).fix) {
    text += line + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("where no batch fits, strategies are tried, and those that fit are named") {
  const Rehearsal ran = advised(training("120 MiB", "ddp"));
  const Advice& advice = ran.results.advice;
  CHECK(advice.largest_batch_size == 0);
  REQUIRE(advice.needed);
  CHECK(*advice.needed >= Bytes(160 << 20));
  const Rehearsal roomy = advised(training("80 GiB", "ddp"));
  CHECK(*advice.needed == roomy.results.ranks.front().memory.peak);
  // Nothing leaves room for the context there.
  CHECK(advice.strategies.empty());
  CHECK(fix_of(ran).find("none of {FSDPStrategy: ") != std::string::npos);
  CHECK(fix_of(ran).find("with activation_checkpointing: full either") != std::string::npos);
}

TEST_CASE("where activations alone are too large, strategies are tried that recompute them") {
  // 8 blocks of 16 Mi parameters, each of which keeps 512 MiB of a sample: 4 GiB beside 2.5 GiB of
  // weights, gradients and moments, on a GPU of 5 GiB. Recomputed, one block's are left.
  const auto blocks = [](const std::string& strategy, const std::string& recompute) {
    return "version: 1\ncluster: {preset: dgx-a100, nodes: 1, gpu: {memory: 5 GiB}}\n"
           "model:\n  input: [1024]\n  loss: MSELoss\n  activation_checkpointing: " +
           recompute +
           "\n  layers: [{repeat: 8, layers: [{Cost: {parameters: 16777216, forward: 1 ms, "
           "backward: 2 ms, activation: 512 MiB}}]}]\noptimizer: AdamW\n"
           "data: {train: {samples: 64, batch_size: 1}}\nverify: {numerics: false}\n"
           "trainer: {accelerator: gpu, devices: 8, max_steps: 3, strategy: " +
           strategy + "}\n";
  };
  const Rehearsal ran = advised(blocks("ddp", "none"));
  const Advice& advice = ran.results.advice;
  CHECK(advice.largest_batch_size == 0);
  REQUIRE_FALSE(advice.strategies.empty());
  for (const Advice::Change& one : advice.strategies) {
    CHECK(one.text.ends_with(" activation_checkpointing: full"));
  }
  CHECK(fix_of(ran).find("lockstep plan") != std::string::npos);
  const Rehearsal written_down = advised(blocks("fsdp", "full"));
  CHECK(std::ranges::count(written_down.findings, "LS401", &Finding::code) == 0);
}

TEST_CASE("a strategy that is proposed fits when it is written down") {
  // ddp needs 16 bytes for each of 1.56 G parameters and more, 23.2 GiB; a GPU has 20 GiB.
  const auto large = [](const Written& proposal) {
    return "version: 1\ncluster: {preset: dgx-a100, nodes: 1, gpu: {memory: 20 GiB}}\n"
           "model: {preset: gpt2-xl, activation_checkpointing: full}\noptimizer: " +
           proposal.optimizer +
           "\ndata: {train: {samples: 64, batch_size: 1}}\nverify: {numerics: false}\n"
           "trainer: {accelerator: gpu, devices: 8, precision: bf16-mixed, max_steps: 3, "
           "strategy: " +
           proposal.strategy + "}\n";
  };
  const Rehearsal ran = advised(large({"ddp"}));
  const Advice& advice = ran.results.advice;
  REQUIRE_FALSE(advice.strategies.empty());
  CHECK(fix_of(ran).find(advice.strategies.front().text) != std::string::npos);
  CHECK(fix_of(ran).find("lower batch_size") == std::string::npos);
  for (const Advice::Change& one : advice.strategies) {
    INFO(one.text);
    const Rehearsal with = advised(large(written(one.text)));
    CHECK(with.why_no_prediction().empty());
    CHECK(with.results.ranks.front().memory.peak <= one.peak);
  }
}

// DeepSpeed 0.19.8, runtime/engine.py, _configure_optimizer: torch's AdamW raises there. AdamW of
// torch decays by 0.01, DeepSpeedCPUAdam by 0.
TEST_CASE("what offloads is proposed with an optimizer that DeepSpeed takes") {
  const auto fix_with = [](const std::string& optimizer, const std::string& versions) {
    std::string text = training("120 MiB", "ddp") + versions;
    text.replace(text.find("AdamW"), 5, optimizer);
    Collected collected = collect(source_of_text(text));
    RehearseRequest request;
    request.explore = false;
    rehearse_all(collected.jobs, request, Judges::words, 1);
    return fix_of(collected.jobs.front().result);
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(has(fix_with("AdamW", ""),
            "deepspeed_stage_2_offload with optimizer: {DeepSpeedCPUAdam: {weight_decay: 0.01}}"));
  const std::string of_sgd = fix_with("{SGD: {lr: 0.1, momentum: 0.9}}", "");
  CHECK(has(of_sgd,
            "{DeepSpeedStrategy: {config: {zero_allow_untested_optimizer: true, "
            "zero_force_ds_cpu_optimizer: false, zero_optimization: {"));
  CHECK_FALSE(has(of_sgd, "deepspeed_stage_2_offload"));
  // 0.8.2 takes every optimizer.
  CHECK(
      has(fix_with("AdamW", "versions: {deepspeed: \"0.8.2\"}\n"), "deepspeed_stage_2_offload, "));
}

TEST_CASE("a batch that is too large is no matter of the strategy") {
  const Rehearsal ran = advised(
      "version: 1\ncluster: {preset: dgx-a100, nodes: 1, gpu: {memory: 1200 MiB}}\n"
      "model: {layers: [{Linear: [64, 64]}, {Cost: {parameters: 0, forward: 1 us, backward: 1 us, "
      "activation: 1 MiB}}], input: [64], loss: MSELoss}\n"
      "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_steps: 4}\n"
      "data: {train: {samples: 4096, batch_size: 4096}}\n");
  CHECK(ran.results.advice.largest_batch_size > 0);
  CHECK(ran.results.advice.strategies.empty());
  CHECK(fix_of(ran).find("lower batch_size") != std::string::npos);
}

TEST_CASE("verify names the families of strategies where a batch is no smaller") {
  Collected collected = collect(source_of_text(training("120 MiB", "ddp")));
  RehearseRequest request;
  request.explore = false;
  rehearse_all(collected.jobs, request, Judges::words, 1);
  const std::string fix = fix_of(collected.jobs.front().result);
  CHECK(fix.find("deepspeed_stage_3") != std::string::npos);
  CHECK(fix.find("{FSDPStrategy: {auto_wrap_policy: blocks}}") != std::string::npos);
  CHECK(fix.find("lower batch_size") == std::string::npos);
}

}  // namespace strategy_advice_test
