// Who waits where a parameter server is gone, and what is advised.
#include <catch2/catch.hpp>

#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace lost_server_test {

namespace {

Rehearsal served(const std::string& mode, const std::string& fault) {
  return std::move(
      rehearsed("version: 1\nversions: {lightning: \"2.4\"}\ncluster: {preset: dgx-a100}\n"
                "model: {layers: [{Linear: [8, 16]}, ReLU, {Linear: [16, 2]}], input: [8]}\n"
                "data: {batch_size: 4, train: {samples: 48}}\n"
                "trainer: {accelerator: gpu, devices: 5, max_epochs: 1, num_sanity_val_steps: 0, "
                "limit_val_batches: 0, enable_checkpointing: false, strategy: "
                "{ParameterServerStrategy: {servers: 2, mode: " +
                mode + "}}}\nfaults: [" + fault + "]\n")
          .front()
          .result);
}

}  // namespace

TEST_CASE("a wait for a lost server names its rank and what helps") {
  for (const char* mode : {"sync", "async"}) {
    INFO(mode);
    const Rehearsal ran = served(mode, "{lost_rank: {rank: 3, at: step 2}}");
    REQUIRE(ran.findings.size() == 1);
    const Finding& finding = ran.findings.front();
    CHECK(finding.code == "LS101");
    CHECK(finding.title.starts_with(
        "ranks 0-2 wait forever for rank 3, a parameter server that was lost after"));
    CHECK(finding.why.text.starts_with("ranks 3-4 are the parameter servers"));
    REQUIRE(finding.fix.size() == 1);
    CHECK(finding.fix.front().starts_with("no mode trains on without a server"));
    const auto told_of_other = std::ranges::count_if(finding.follows, [](const std::string& text) {
      return text.starts_with("rank 4, the other server, waits");
    });
    CHECK(told_of_other == 1);
  }
}

// A step of a server is an update: of three workers under async there are three in each step of
// sync.
TEST_CASE("`at: step N` of a server counts its updates") {
  CHECK(served("sync", "{lost_rank: {rank: 4, at: step 3}}").hung);
  CHECK_FALSE(served("sync", "{lost_rank: {rank: 4, at: step 5}}").hung);  // 4 updates in all
  CHECK(served("async", "{lost_rank: {rank: 4, at: step 11}}").hung);      // 12
}

// Of seven gradients six make three updates of two; the seventh waits.
TEST_CASE("what is advised where a worker is lost is not what the scenario has") {
  const auto advice = [](const std::string& mode) {
    const Rehearsal ran = served(mode, "{lost_rank: {rank: 1, at: step 1}}");
    const auto found = std::ranges::find_if(ran.findings, [](const Finding& finding) {
      return !finding.fix.empty() &&
             finding.fix.front().find("from a checkpoint") != std::string::npos;
    });
    REQUIRE(found != ran.findings.end());
    return found->fix.front();
  };
  CHECK(advice("sync").find("or batched with fewer gradients") != std::string::npos);
  const std::string batched = advice("batched, batch: 2");
  CHECK(batched.find("batched") == std::string::npos);
}

TEST_CASE("an exception of a worker is not answered with numbers of batches") {
  const Rehearsal ran = served("sync", "{exception: {rank: 1, at: step 1}}");
  REQUIRE_FALSE(ran.findings.empty());
  for (const Finding& finding : ran.findings) {
    for (const std::string& line : finding.fix) {
      CHECK(line.find("join: true") == std::string::npos);
    }
  }
}

TEST_CASE("a fault that only a trainer can have says that the rank is a server") {
  const Rehearsal ran = served("sync", "{exception: {rank: 4, at: step 2}}");
  const auto told = std::ranges::find_if(ran.problems, [](const Problem& problem) {
    return problem.message.find("rank 4 is a parameter server, which runs no hook") !=
           std::string::npos;
  });
  CHECK(told != ran.problems.end());
}

}  // namespace lost_server_test
