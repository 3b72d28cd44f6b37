// The table of `run` over the cases of a file: every case is a line, whatever came of it.
#include "cli/render/render_side_by_side.hpp"

#include <catch2/catch.hpp>
#include <sstream>

#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace side_by_side_test {

namespace {

// A Linear of 1024 x 1024 with its bias: 4 bytes for each of 1,049,600 parameters are 4.004 MiB.
const std::string head = R"yaml(version: 1
cluster: {preset: dgx-a100, nodes: 1}
model: {input: [1024], layers: [{Linear: [1024, 1024]}], loss: MSELoss}
optimizer: AdamW
data: {train: {samples: 64, batch_size: 1}}
trainer: {accelerator: gpu, devices: 4, max_steps: 3, num_sanity_val_steps: 0, limit_val_batches: 0}
verify: {numerics: false}
cases:
)yaml";

std::string table(const std::string& cases) {
  Collected collected = collect(source_of_text(head + cases));
  REQUIRE(collected.diagnostics.empty());
  RehearseRequest request;
  request.explore = false;
  request.advise = true;
  rehearse_all(collected.jobs, request, Judges::quantities, 1);
  std::vector<const Rehearsal*> results;
  for (const Job& job : collected.jobs) {
    results.push_back(&job.result);
  }
  return render_side_by_side(results, Style{});
}

std::string line_of(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  " + name + " ")) {
      return line;
    }
  }
  return "";
}

bool says(const std::string& line, const std::string& words) {
  return line.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("a case that gives no prediction is a line with its verdict") {
  const std::string text = table(R"yaml(
  good: {trainer: {strategy: ddp}}
  refused: {trainer: {strategy: deepspeed_stage_2, precision: 64-true}}
  unknown:
    versions: {deepspeed: "0.18.0"}
    trainer: {strategy: {DeepSpeedStrategy: {stage: 0}}, precision: bf16-mixed}
  hangs:
    trainer: {strategy: ddp}
    program: {on_train_batch_end: [{if: rank == 1, then: [barrier]}]}
  raises: {trainer: {strategy: ddp}, program: {on_train_batch_end: [{raise: "no"}]}}
  large: {trainer: {strategy: ddp}, cluster: {gpu: {memory: 12 MiB}}}
  host:
    optimizer: DeepSpeedCPUAdam
    trainer: {strategy: deepspeed_stage_2_offload}
    cluster: {memory: 1 MiB}
)yaml");
  INFO(text);
  CHECK(says(line_of(text, "refused"), "refused, LS501"));
  CHECK(says(line_of(text, "unknown"), "not modelled"));
  CHECK(says(line_of(text, "hangs"), "hangs, LS101"));
  CHECK(says(line_of(text, "raises"), "raises"));
  // Weights, gradients, buckets, two moments and what AdamW makes for a moment are 4 bytes each,
  // 24 for each parameter: 24.02 MiB.
  CHECK(says(line_of(text, "large"), "does not fit: 24.0 MiB of 12.0 MiB"));
  CHECK(says(line_of(text, "host"), "does not fit: host "));
  CHECK(says(line_of(text, "host"), " of 1.0 MiB"));
  // Of a single prediction nothing is the fastest.
  CHECK_FALSE(says(text, "fastest"));
}

TEST_CASE("the fastest and the smallest are marked, and strategies told where they differ") {
  const std::string text = table(R"yaml(
  whole: {trainer: {strategy: ddp}}
  late: {trainer: {strategy: ddp}, program: {on_train_batch_end: [host: 10 ms]}}
  divided: {trainer: {strategy: {FSDPStrategy: {auto_wrap_policy: [Linear]}}}}
)yaml");
  INFO(text);
  CHECK(says(text, "  case     strategy"));
  CHECK(says(line_of(text, "divided"), " fsdp "));
  CHECK(says(line_of(text, "divided"), "smallest"));
  CHECK_FALSE(says(line_of(text, "whole"), "smallest"));
  CHECK_FALSE(says(line_of(text, "late"), "fastest"));
  CHECK(says(text, "fastest"));
  // 4 samples in at least 10 ms.
  CHECK(says(line_of(text, "late"), " 39"));
  CHECK(says(line_of(text, "late"), " %"));
  CHECK_FALSE(says(text, "e+"));
  CHECK_FALSE(says(table("  one: {trainer: {strategy: ddp}}\n  two: {trainer: {strategy: ddp, "
                         "max_steps: 4}}\n"),
                   "strategy"));
}

}  // namespace side_by_side_test
