// Trainings whose ranks divide parameters, gradients or optimizer state among them equal that of
// one device, in whatever types they compute and communicate.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "rehearsal/findings/invariants.hpp"
#include "rehearsal/findings/narrow_types.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace sharded_training_test {

namespace {

std::vector<cli::Job> sharded_cases() {
  cli::CaseSource source;
  source.path = LOCKSTEP_SOURCE_DIR "/tests/data/sharded.yaml";
  cli::Collected collected = cli::collect(source);
  REQUIRE(collected.diagnostics.empty());
  cli::RehearseRequest request;
  request.find_smallest = false;
  cli::rehearse_all(collected.jobs, request, cli::Judges::all, 2);
  return std::move(collected.jobs);
}

std::string narrow_of(const cli::OneRun& run) {
  const std::optional<cli::NarrowType> narrow = cli::narrow_beside_parameters(run);
  return !narrow ? "none" : std::string(name_of(narrow->dtype)) + (narrow->in_layers ? " all" : "");
}

}  // namespace

TEST_CASE("strategies that shard train as one device does, without a race") {
  std::map<std::string, std::string> narrow;
  for (const cli::Job& job : sharded_cases()) {
    INFO(job.scenario->name);
    for (const Finding& finding : job.result.findings) {
      INFO(finding.code << " " << finding.title << ": " << finding.why.text);
      // Batch norm takes statistics of a part of the batch.
      CHECK((finding.code == "LS306" && finding.level == Level::warning));
    }
    narrow[job.scenario->name] = narrow_of(job.result.run);
  }
  CHECK(narrow["zero_3_offload"] == "bf16 all");
  CHECK(narrow["fsdp2_kept_in_pairs"] == "bf16 all");
  CHECK(narrow["fsdp2_mesh"] == "fp16 all");
  CHECK(narrow["fairscale_buffers"] == "fp16");
  CHECK(narrow["zero_redundancy"] == "none");
}

TEST_CASE("LS306 says what a strategy is known to do otherwise than one device") {
  cli::CaseSource source;
  source.path = LOCKSTEP_SOURCE_DIR "/scenarios/sharded/differences.yaml";
  cli::Collected collected = cli::collect(source);
  REQUIRE(collected.diagnostics.empty());
  cli::RehearseRequest request;
  request.find_smallest = false;
  cli::rehearse_all(collected.jobs, request, cli::Judges::all, 2);
  std::map<std::string, std::string> told;
  for (const cli::Job& job : collected.jobs) {
    for (const Finding& finding : job.result.findings) {
      for (const std::string& line : finding.follows) {
        told[job.scenario->name] += line + "\n";
      }
    }
  }
  const auto says = [&told](const std::string& name, const std::string& words) {
    return told[name].find(words) != std::string::npos;
  };
  CHECK(says("sharded_buffers_with_torch_2", "zero_grad has set gradients to None"));
  CHECK(says("sharded_on_two_nodes_with_torch_2", "zero_grad has set gradients to None"));
  CHECK(says("fsdp_offload_accumulating_by_hand", "replaced by that of the next backward"));
  CHECK(told["fsdp_offload_accumulating"].empty());
  CHECK(told["sharded_buffers_zeroed_in_place"].empty());
}

TEST_CASE("ZeroRedundancyOptimizer is compared with the optimizer that it holds") {
  const std::string text = R"yaml(version: 1
cluster: {preset: dgx-a100, nodes: 1}
model: {input: [8], layers: [{Linear: [8, 16]}, ReLU, {Linear: [16, 4]}], loss: MSELoss}
data: {train: {samples: 24, batch_size: 4}}
trainer: {accelerator: gpu, devices: 3, strategy: ddp, max_epochs: 1, num_sanity_val_steps: 0,
          limit_val_batches: 0}
optimizer: {ZeroRedundancyOptimizer: {optimizer_class: torch.optim.AdamW, lr: 0.01}}
expect: [no_findings]
)yaml";
  const std::vector<cli::Job> jobs = rehearsed(text);
  REQUIRE(jobs.size() == 1);
  CHECK(jobs[0].result.findings.empty());
  const std::vector<std::string>& seen = jobs[0].result.coverage.looked_at;
  CHECK(std::ranges::find(seen, "the same samples on one device") != seen.end());
}

}  // namespace sharded_training_test
