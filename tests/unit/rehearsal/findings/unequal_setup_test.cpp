// Ranks that a scenario sets up differently: what a finding names as the cause, and how it is
// fixed.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace unequal_setup_test {

namespace {

Rehearsal trained_unequally(const std::string& strategy, const std::string& first = "") {
  return std::move(
      rehearsed("version: 1\ncluster: {preset: dgx-a100, nodes: 1}\n"
                "model: {input: [8], layers: [{Linear: {in_features: 8, out_features: 16" +
                first +
                "}}, ReLU, {Linear: [16, 16]}, ReLU, {Linear: [16, 4]}], loss: MSELoss}\n"
                "trainer: {accelerator: gpu, devices: 4, max_epochs: 1, num_sanity_val_steps: 0, "
                "limit_val_batches: 0, enable_checkpointing: false,\n"
                "  strategy: " +
                strategy + "}\ndata: {train: {samples: 64, batch_size: 4}}\n")
          .front()
          .result);
}

std::string fix_of(const Finding& finding) {
  std::string fix;
  for (const std::string& line : finding.fix) {
    fix += line + "\n";
  }
  return fix;
}

int line_of_finding(const Rehearsal& ran) {
  const Site* const site = ran.sites.find(ran.findings.front().place);
  return site == nullptr ? 0 : site->line;
}

}  // namespace

TEST_CASE("an argument of the strategy that ranks have differently is the cause, with its place") {
  const Rehearsal ran = trained_unequally(
      "{FSDPStrategy: {auto_wrap_policy: {on_ranks: [2], value: null, otherwise: [Linear]}}}");
  REQUIRE_FALSE(ran.findings.empty());
  const Finding& finding = ran.findings.front();
  CHECK(finding.code == "LS104");
  CHECK(finding.why.text.find("`auto_wrap_policy` is not the same on all ranks") !=
        std::string::npos);
  CHECK(fix_of(finding).find("give `auto_wrap_policy` the same value on every rank") !=
        std::string::npos);
  CHECK(line_of_finding(ran) == 5);
}

TEST_CASE("a layer that one rank freezes is the cause, with its place") {
  const Rehearsal ran =
      trained_unequally("{FSDPStrategy: {auto_wrap_policy: [Linear]}}", ", frozen_on: [1]");
  REQUIRE_FALSE(ran.findings.empty());
  const Finding& finding = ran.findings.front();
  CHECK(fix_of(finding).find("freeze the same layers on every rank") != std::string::npos);
  CHECK(line_of_finding(ran) == 3);
}

// Every rank calls as many: nothing is missing.
TEST_CASE("ranks that gather ahead and ranks that do not call in a different order") {
  const Rehearsal ran = trained_unequally(
      "{FSDPStrategy: {auto_wrap_policy: [Linear], backward_prefetch: {on_ranks: [2], value: null, "
      "otherwise: BACKWARD_PRE}}}");
  REQUIRE_FALSE(ran.findings.empty());
  CHECK(ran.findings.front().code == "LS103");
  CHECK(fix_of(ran.findings.front()).find("`backward_prefetch`") != std::string::npos);
}

}  // namespace unequal_setup_test
