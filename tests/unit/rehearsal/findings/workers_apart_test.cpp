// What is said of a parameter server's workers that have different numbers of batches.
#include <catch2/catch.hpp>

#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace workers_apart_test {

namespace {

Rehearsal served(const std::string& batches, const std::string& trainer) {
  return std::move(
      rehearsed("version: 1\nversions: {lightning: \"2.4\"}\ncluster: {preset: dgx-a100}\n"
                "model: {layers: [{Linear: [4, 2]}], input: [4], loss: MSELoss}\n"
                "data: {train: {batches: \"" +
                batches +
                "\", batch_size: 2}}\n"
                "trainer: {accelerator: gpu, devices: 3, max_epochs: 1, num_sanity_val_steps: 0, "
                "limit_val_batches: 0, strategy: {ParameterServerStrategy: {mode: sync}}" +
                trainer + "}\n")
          .front()
          .result);
}

bool says(const std::vector<std::string>& lines, const std::string& words) {
  return std::ranges::any_of(
      lines, [&](const std::string& line) { return line.find(words) != std::string::npos; });
}

}  // namespace

TEST_CASE(
    "rank 0 that ends before other workers has older weights, and no first values that differ") {
  const Rehearsal ran = served("4 - (rank == 0)", ", enable_checkpointing: false");
  REQUIRE(ran.findings.size() == 1);
  const Finding& finding = ran.findings.front();
  CHECK(finding.code == "LS305");
  CHECK(says(finding.follows, "rank 0, which saves, has ended before other workers"));
  CHECK(finding.fix == std::vector<std::string>{"give every worker the same number of batches"});
  CHECK(served("4 + (rank == 0)", ", enable_checkpointing: false").findings.empty());
}

TEST_CASE(
    "a collective that a worker with fewer batches reaches is not answered with its own mode") {
  const Rehearsal ran = served("4 + (rank == 0)", "");
  REQUIRE(ran.findings.size() == 1);
  CHECK(ran.findings.front().code == "LS106");
  CHECK(says(ran.findings.front().fix, "give every worker the same number of batches"));
  CHECK_FALSE(says(ran.findings.front().fix, "mode: sync"));
}

}  // namespace workers_apart_test
