#include "rehearsal/findings/calls_of_threads.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace calls_of_threads_test {

namespace {

// Buckets of 209 bytes: the last layer and the first are apart.
std::string power_sgd_over_gloo(const std::string& buckets) {
  return R"yaml(version: 1
cluster: {preset: dgx-a100, nodes: 1}
model:
  input: [16]
  layers: [{Linear: [16, 16]}, ReLU, {Linear: [16, 4]}]
  loss: MSELoss
optimizer: {SGD: {lr: 0.01}}
data: {train: {samples: 64, batch_size: 2}}
trainer:
  accelerator: gpu
  devices: 2
  max_epochs: 1
  num_sanity_val_steps: 0
  limit_val_batches: 0
  strategy:
    DDPStrategy:
      process_group_backend: gloo
      ddp_comm_hook: powerSGD_hook
      ddp_comm_state: {start_powerSGD_iter: 2}
)yaml" + buckets;
}

const std::string two_buckets = "      bucket_cap_mb: 0.0002\n";

std::vector<std::string> codes_of_thread_calls(const std::vector<Finding>& findings) {
  std::vector<std::string> codes;
  for (const Finding& finding : findings) {
    codes.push_back(finding.code);
  }
  return codes;
}

SiteId site_without_file(const Rehearsal& ran) {
  for (const Finding& finding : ran.findings) {
    if (finding.code == "LS103") {
      return finding.site();
    }
  }
  return no_site;
}

using ThreadCodes = std::vector<std::string>;

}  // namespace

TEST_CASE("PowerSGD over Gloo is an error with two buckets, and none with one") {
  const auto two = rehearsed(power_sgd_over_gloo(two_buckets));
  REQUIRE(two.size() == 1);
  REQUIRE(codes_of_thread_calls(two.front().result.findings) == ThreadCodes{"LS103"});
  CHECK(two.front().result.findings.front().level == Level::error);
  const auto one = rehearsed(power_sgd_over_gloo(""));
  REQUIRE(one.size() == 1);
  CHECK(one.front().result.findings.empty());
}

// What a real run does with unordered calls is chance: by hand both outcomes are here.
TEST_CASE("what follows from unordered calls is part of one finding, and what does not is not") {
  auto jobs = rehearsed(power_sgd_over_gloo(two_buckets));
  Rehearsal& ran = jobs.front().result;
  const SiteId of_thread = site_without_file(ran);
  REQUIRE(of_thread != no_site);

  Finding exchange = lockstep::finding_of("LS103", Level::error, "ranks exchange two calls");
  exchange.call = 28;
  exchange.did = {{RankSet{0}, 28, "all_reduce", of_thread},
                  {RankSet{1}, 28, "all_reduce", of_thread}};
  const Finding replicas = lockstep::finding_of("LS305", Level::error, "replicas differ");
  const Finding memory = lockstep::finding_of("LS401", Level::error, "does not fit");

  std::vector<Finding> findings = {exchange, replicas, memory};
  add_unordered_calls(ran.run, findings);
  REQUIRE(codes_of_thread_calls(findings) == ThreadCodes{"LS401", "LS103"});
  CHECK(findings.back().also == ThreadCodes{"LS305"});
  CHECK(findings.back().call == 28);
  CHECK(findings.back().follows ==
        ThreadCodes{"in this run ranks exchange two calls", "in this run replicas differ"});

  // Replicas that differ though no call was exchanged have a cause of their own in a simulation.
  findings = {replicas};
  add_unordered_calls(ran.run, findings);
  CHECK(codes_of_thread_calls(findings) == ThreadCodes{"LS305", "LS103"});
  findings = {replicas};
  ran.run.world = World::threads;
  add_unordered_calls(ran.run, findings);
  CHECK(codes_of_thread_calls(findings) == ThreadCodes{"LS103"});
}

TEST_CASE("a user's call in place of a thread's is a finding of its own") {
  auto jobs = rehearsed(power_sgd_over_gloo(two_buckets));
  OneRun& run = jobs.front().result.run;
  Site of_user;
  of_user.description = "all_gather";
  of_user.file = "scenario.yaml";
  of_user.line = 7;
  const SiteId statement = run.preparation.sites.add(of_user);
  Finding guarded = lockstep::finding_of("LS101", Level::error, "rank 0 waits forever");
  guarded.did = {{RankSet{0}, 9, "all_gather", statement},
                 {RankSet{1}, 9, "all_reduce", site_without_file(jobs.front().result)}};
  std::vector<Finding> findings = {guarded};
  add_unordered_calls(run, findings);
  CHECK(codes_of_thread_calls(findings) == ThreadCodes{"LS101", "LS103"});
}

// A call that is still under way has no time of its own; threads that follow each other do not
// overlap for that.
TEST_CASE("a stall of Horovod over Gloo is one finding") {
  const auto jobs = rehearsed(R"yaml(version: 1
versions: {lightning: "1.6"}
cluster: {preset: cpu}
model: {input: [8], layers: [{Linear: [8, 4], name: head}], loss: MSELoss}
data: {train: {batches: 4 + (rank == 0), batch_size: 4}}
trainer:
  accelerator: cpu
  devices: 4
  strategy: {HorovodStrategy: {process_sets: [[0, 1], [2, 3]]}}
  max_epochs: 1
  num_sanity_val_steps: 0
  limit_val_batches: 0
)yaml");
  REQUIRE(jobs.size() == 1);
  CHECK(codes_of_thread_calls(jobs.front().result.findings) == ThreadCodes{"LS101"});
}

}  // namespace calls_of_threads_test
