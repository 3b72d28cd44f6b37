// What is proposed where memory does not suffice.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "tests/unit/rehearsal/measure/advised.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace memory_remedy_test {

namespace {

// Eight layers of 4 MiB in fp32 on two GPUs: each rank keeps 16 MiB of weights and 32 MiB of
// moments, and of gradients 16 MiB, or 32 MiB where they stay whole; two gathered layers are 8 MiB.
// So 88 MiB suffice for the former (72 MiB and what a step needs beside) and not for the latter (88
// MiB and it).
std::string training(const std::string& trainer) {
  std::string layers;
  for (int layer = 0; layer < 8; ++layer) {
    layers += fmt::format("{}{{Linear: [1024, 1024]}}", layer == 0 ? "" : ", ");
  }
  return fmt::format(
      "version: 1\ncluster: {{preset: dgx-a100, nodes: 1, gpu: {{memory: 88 MiB}}}}\n"
      "model: {{input: [1024], loss: MSELoss, layers: [{}]}}\noptimizer: {{AdamW: {{lr: 0.1}}}}\n"
      "data: {{train: {{samples: 64, batch_size: 4}}}}\nverify: {{numerics: false}}\n"
      "trainer: {{accelerator: gpu, devices: 2, max_steps: 2, num_sanity_val_steps: 0, "
      "limit_val_batches: 0, enable_checkpointing: false, {}}}\n",
      layers, trainer);
}

/// The fix of the first error LS401; empty: there is none.
std::string fix_of(const std::string& text) {
  const Rehearsal rehearsal = advised(text);
  const auto found = std::ranges::find_if(rehearsal.findings, [](const Finding& finding) {
    return finding.code == "LS401" && finding.level == Level::error;
  });
  return found == rehearsal.findings.end() ? "" : fmt::format("{}", fmt::join(found->fix, "\n"));
}

bool says(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

const std::string fsdp = "strategy: {FSDPStrategy: {auto_wrap_policy: [Linear]}}";
const std::string ddp = "strategy: ddp";
const std::string accumulating = ", accumulate_grad_batches: 2";

}  // namespace

TEST_CASE("gradients that no_sync keeps whole are named as what fills the memory") {
  const std::string fix = fix_of(training(fsdp + accumulating));
  CHECK(says(fix, "set accumulate_grad_batches: 1"));
  CHECK(says(fix, "all but the last of 2 batches"));
  CHECK(fix_of(training(fsdp)).empty());
}

TEST_CASE("no_sync is no cause where each rank keeps all gradients anyway") {
  const std::string fix = fix_of(training(ddp + accumulating));
  REQUIRE_FALSE(fix.empty());
  CHECK_FALSE(says(fix, "no_sync"));
}

TEST_CASE("recomputing activations is not proposed to a model that does so already") {
  // Recomputing was tried, and is too large as well.
  CHECK(says(fix_of(training(fsdp + accumulating)), "with activation_checkpointing: full either"));
  const std::string fix =
      fix_of(training("strategy: {FSDPStrategy: {auto_wrap_policy: [Linear], "
                      "activation_checkpointing_policy: [Linear]}}" +
                      accumulating));
  REQUIRE_FALSE(fix.empty());
  CHECK_FALSE(says(fix, "recompute"));
}

}  // namespace memory_remedy_test
