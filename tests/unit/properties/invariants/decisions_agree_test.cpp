#include "properties/invariants/decisions_agree.hpp"

#include <catch2/catch.hpp>

using namespace lockstep;

namespace decisions_agree_test {

namespace {

MonitoredDecision decision(std::vector<RankDecisions> ranks) {
  return {"ModelCheckpoint", "val_loss",         "saves",         "the best checkpoint",
          site_id("here"),   site_id("the log"), std::move(ranks)};
}

}  // namespace

TEST_CASE("ranks that see the same decide the same") {
  const std::vector<DecisionTurn> turns = {{0, 2, true, true}, {1, 3, false, false}};
  const MonitoredDecision same = decision({{0, turns, "a.ckpt"}, {1, turns, "a.ckpt"}});
  CHECK(decisions_agree({&same, 1}).empty());
  CHECK(decisions_agree({}).empty());
}

TEST_CASE("another result on some ranks is an error, with the first values that differ") {
  const MonitoredDecision apart =
      decision({{0, {{0, 3, true, true}, {1, 1, true, true}}, "b.ckpt"},
                {1, {{0, 3, true, true}, {1, 4, true, true}}, "a.ckpt"},
                {2, {{0, 3, true, true}, {1, 4, true, true}}, "a.ckpt"}});
  const std::vector<Finding> findings = decisions_agree({&apart, 1});
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS109");
  CHECK(findings[0].level == Level::error);
  CHECK(findings[0].title ==
        "the best checkpoint differs by rank: b.ckpt on rank 0, a.ckpt on ranks 1-2");
  CHECK(findings[0].when == "epoch 1");
  REQUIRE(findings[0].why.ways.size() == 2);
  CHECK(findings[0].why.ways[1].ranks.phrase() == "ranks 1-2");
  CHECK(findings[0].why.ways[1].value == "val_loss = 4: saves");
  CHECK(findings[0].site() == site_id("here"));
  CHECK(findings[0].why.site == site_id("the log"));
}

TEST_CASE("another deed with the same result is an error, one more turn too") {
  const MonitoredDecision other =
      decision({{0, {{0, 1, true, true}}, "a"}, {1, {{0, 1, true, false}}, "a"}});
  REQUIRE(decisions_agree({&other, 1}).size() == 1);
  CHECK(decisions_agree({&other, 1})[0].level == Level::error);
  const MonitoredDecision more = decision(
      {{0, {{0, 1, true, true}}, "a"}, {1, {{0, 1, true, true}, {1, 1, true, true}}, "a"}});
  REQUIRE(decisions_agree({&more, 1}).size() == 1);
  CHECK(decisions_agree({&more, 1})[0].why.ways[0].value == "decides nothing");
}

TEST_CASE("ranks that were made to agree are a warning") {
  const MonitoredDecision made =
      decision({{0, {{0, 1, true, false}}, "a"}, {1, {{0, 2, false, false}}, "a"}});
  const std::vector<Finding> findings = decisions_agree({&made, 1});
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].level == Level::warning);
  CHECK(findings[0].title == "ranks disagree whether ModelCheckpoint saves");
  CHECK(findings[0].topic == FindingTopic::disagreement);
  CHECK(findings[0].follows.at(0) == "it does so on no rank, because some ranks decide against it");
}

}  // namespace decisions_agree_test
