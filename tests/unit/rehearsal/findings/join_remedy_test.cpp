// torch's Join context is advised for unequal numbers of batches where DDP wraps the model alone.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace join_remedy_test {

namespace {

std::string advised(const std::string& cluster, const std::string& trainer) {
  const std::vector<Job> jobs =
      rehearsed("version: 1\nversions: {lightning: \"1.9\"}\ncluster: {preset: " + cluster +
                ", nodes: 1}\nmodel: {input: [8], layers: [{Linear: [8, 4]}], loss: MSELoss}\n"
                "data: {train: {batches: 4 + (rank == 0), batch_size: 4}}\n"
                "trainer: {" +
                trainer + ", max_epochs: 1, num_sanity_val_steps: 0, limit_val_batches: 0}\n");
  for (const Finding& finding : jobs.front().result.findings) {
    if (finding.code == "LS102") {
      return fmt::format("{}", fmt::join(finding.fix, "\n"));
    }
  }
  return "";
}

bool holds(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("join is advised under DDP, and not under a strategy without it") {
  const std::string ddp = advised("dgx-a100", "accelerator: gpu, devices: 2, strategy: ddp");
  CHECK(holds(ddp, "limit_train_batches"));
  CHECK(holds(ddp, "join: true"));
  for (const std::string& advice :
       {advised("dgx-a100", "accelerator: gpu, devices: 2, strategy: bagua"),
        advised("tpu-v3-8", "accelerator: tpu, devices: 8")}) {
    CHECK(holds(advice, "limit_train_batches"));
    CHECK_FALSE(holds(advice, "join"));
  }
}

}  // namespace join_remedy_test
