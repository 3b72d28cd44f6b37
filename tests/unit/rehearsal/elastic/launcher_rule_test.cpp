#include "rehearsal/elastic/launcher_rule.hpp"

#include <catch2/catch.hpp>

using namespace lockstep;
using namespace lockstep::cli;

namespace launcher_rule_test {

namespace {

ElasticLauncher torchrun(int64_t least, int64_t most, int64_t max_restarts) {
  return {least, most, max_restarts, 2};
}

}  // namespace

TEST_CASE("the first nodes of a cluster take part, and those beyond nnodes are spares") {
  const ElasticWorld world = first_world(torchrun(2, 4, 1), 6);
  CHECK(world.nodes == std::vector<int32_t>{0, 1, 2, 3});
  CHECK(world.spares == std::vector<int32_t>{4, 5});
  CHECK(first_world(torchrun(2, 4, 1), 3).nodes == std::vector<int32_t>{0, 1, 2});
}

TEST_CASE("a failed worker restarts the same world, and counts for the agent of its node alone") {
  const ElasticLauncher launcher = torchrun(2, 2, 1);
  const NextAttempt next = after_failure(launcher, first_world(launcher, 2), {{1}, {}});
  REQUIRE(next.world);
  CHECK(next.world->nodes == std::vector<int32_t>{0, 1});
  CHECK(next.world->restarts == std::map<int32_t, int64_t>{{1, 1}});
  // api.py: every agent has max_restarts of its own.
  CHECK(after_failure(launcher, *next.world, {{0}, {}}).world);
  const NextAttempt again = after_failure(launcher, *next.world, {{1}, {}});
  CHECK_FALSE(again.world);
  CHECK(again.why_not == "the agent of node 1 has used its restart (max_restarts: 1)");
}

TEST_CASE("a spare takes the place of a lost node, behind those that have lower names") {
  const ElasticLauncher launcher = torchrun(4, 4, 1);
  const NextAttempt next = after_failure(launcher, first_world(launcher, 6), {{0, 1, 3}, {2}});
  REQUIRE(next.world);
  CHECK(next.world->nodes == std::vector<int32_t>{0, 1, 3, 4});
  CHECK(next.world->spares == std::vector<int32_t>{5});
}

TEST_CASE("without a spare the world shrinks to the minimum and no further") {
  const ElasticLauncher launcher = torchrun(2, 3, 5);
  NextAttempt next = after_failure(launcher, first_world(launcher, 3), {{0, 1}, {2}});
  REQUIRE(next.world);
  CHECK(next.world->nodes == std::vector<int32_t>{0, 1});
  next = after_failure(launcher, *next.world, {{0}, {1}});
  CHECK_FALSE(next.world);
  CHECK(next.why_not ==
        "1 node is left, and nnodes asks for at least 2: the agents wait 10 min for another, and "
        "end");
}

TEST_CASE("the node that serves the rendezvous takes the job with it") {
  const ElasticLauncher launcher = torchrun(1, 3, 5);
  const NextAttempt next = after_failure(launcher, first_world(launcher, 3), {{1, 2}, {0}});
  CHECK_FALSE(next.world);
  CHECK(next.why_not == "the store in which the agents meet was on node 0 (--rdzv-endpoint)");
}

TEST_CASE("max_restarts 0 ends the job with the first failure") {
  const ElasticLauncher launcher = torchrun(1, 2, 0);
  CHECK(after_failure(launcher, first_world(launcher, 2), {{1}, {}}).why_not ==
        "torchrun restarts nothing (max_restarts: 0)");
}

TEST_CASE("what a restart takes follows from torchrun's time limits") {
  const ElasticLauncher launcher = torchrun(2, 4, 1);
  DowntimeFacts facts;
  facts.handles_sigterm = true;
  facts.group_timeout = 10_min;
  facts.start_time = 20_s;
  facts.nodes_before = facts.nodes_after = 1;
  // It looks every 0.1 s; ranks that wait are killed 30 s after SIGTERM; last call: 30 s.
  ElasticLauncher one_node = launcher;
  one_node.most_nodes = 1;
  CHECK(downtime_of(one_node, facts).whole() == 100_ms + 30_s + 20_s);
  facts.handles_sigterm = false;
  CHECK(downtime_of(one_node, facts).whole() == 100_ms + 20_s);
  // The agents of other nodes see the first one wait for them when its own workers have ended.
  facts.handles_sigterm = true;
  facts.nodes_before = facts.nodes_after = 4;
  CHECK(downtime_of(launcher, facts).stopping == 30_s + 100_ms + 30_s);
  // NCCL's watchdog ends ranks that wait for a node; Gloo's calls fail at once, and the agents
  // count the node until its third keep-alive is missing.
  facts.lost_node = true;
  facts.nodes_after = 3;
  Downtime down = downtime_of(launcher, facts);
  CHECK(down.detection == 10_min);
  CHECK(down.stopping == 0_s);
  CHECK(down.rendezvous == 30_s);
  facts.errors_at_once = true;
  down = downtime_of(launcher, facts);
  CHECK(down.detection + down.rendezvous == 15_s + 30_s);
}

}  // namespace launcher_rule_test
