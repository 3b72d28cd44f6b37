// Every claim of `explain guides` is shown by a scenario, and says which strategy that lacks.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "model/strategy/registry.hpp"
#include "tests/cli_test/scenario_library.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace guides_test {
using nlohmann::json;

namespace {

json claims() {
  const Ended ended = run_program("explain guides --format json");
  REQUIRE(ended.code == 0);
  return json::parse(ended.output)["claims"];
}

/// Why a claim says too little or names nothing; empty: it does not.
std::string problem_of(const json& claim) {
  for (const char* key : {"name", "claim", "versions", "reason"}) {
    if (claim[key].get<std::string>().empty()) {
      return std::string("no ") + key;
    }
  }
  const std::string verdict = claim["verdict"];
  if (verdict != "right" && verdict != "wrong" && verdict != "right only if") {
    return "no verdict";
  }
  if ((verdict == "right only if") == claim["condition"].is_null()) {
    return "a condition goes with `right only if`, and the other way round";
  }
  return look_up_scenario(claim["scenario"]).problem;
}

}  // namespace

TEST_CASE("a claim of the guides has a verdict, versions, a reason, and a scenario that is there") {
  std::set<std::string> names;
  for (const json& claim : claims()) {
    INFO(claim.dump());
    CHECK(problem_of(claim) == "");
    CHECK(names.insert(claim["name"]).second);
  }
  CHECK(names.size() >= 35);
}

TEST_CASE("the rule of claims sees each omission") {
  const json whole = claims()[0];
  for (const char* key : {"name", "claim", "versions", "reason", "verdict"}) {
    json broken = whole;
    broken[key] = "";
    CHECK(problem_of(broken) != "");
  }
  for (const char* scenario :
       {"", "scenarios/guides/nowhere.yaml", "scenarios/guide-environment.yaml:nowhere"}) {
    json broken = whole;
    broken["scenario"] = scenario;
    CHECK(problem_of(broken) != "");
  }
}

TEST_CASE("every scenario of scenarios/guides is named by a claim") {
  std::set<std::string> named;
  for (const json& claim : claims()) {
    const std::string scenario = claim["scenario"];
    named.insert(scenario.substr(0, scenario.find(':')));
  }
  for (const auto& entry :
       std::filesystem::directory_iterator(source_folder + "/scenarios/guides")) {
    const std::string file = "scenarios/guides/" + entry.path().filename().string();
    INFO(file);
    CHECK(named.count(file) == 1);
  }
}

TEST_CASE("a claim names a missing strategy only while it is not modelled") {
  const StrategyRegistry strategies = standard_strategies();
  std::set<std::string> missing;
  for (const json& claim : claims()) {
    if (!claim["missing_strategy"].is_null()) {
      const std::string strategy = claim["missing_strategy"];
      CHECK(strategies.find(strategy) == nullptr);  // else: let its scenario train with it
      missing.insert(strategy);
    }
  }
  CHECK(missing.empty());
}

TEST_CASE("explain guides NAME shows the scenario as it is in the library") {
  const Ended text = run_program("explain guides sixty-four-over-four");
  const std::string file =
      text_of_file(source_folder + "/scenarios/guides/dp-splits-the-batch.yaml");
  CHECK(text.code == 0);
  CHECK(text.output.starts_with("sixty-four-over-four: wrong\n"));
  CHECK(text.output.ends_with("\n\n" + file));
  const Ended ended = run_program("explain guides sixty-four-over-four --format json");
  CHECK(json::parse(ended.output)["scenario_text"] == file);
  CHECK(run_program("explain guides nothing").code == 2);
  CHECK(run_program("explain LS101 guides").code == 2);
}

TEST_CASE("every page of explain is also JSON") {
  const json pages = json::parse(run_program("explain --format json").output)["pages"];
  CHECK(pages.size() > 40);
  for (const json& page : pages) {
    const Ended ended = run_program("explain " + page.get<std::string>() + " --format json");
    INFO(page);
    CHECK(ended.code == 0);
    CHECK(json::parse(ended.output)["command"] == "explain");
  }
}

// What a guide says of one size is answered for several: 12 pairs, of four sizes on three machines.
TEST_CASE(
    "claims about ddp_sharded are answered by a table that is predicted when it is asked for") {
  for (const char* name : {"sharded-may-be-slower", "sharded-from-500-million"}) {
    const Ended ended = run_program(std::string("explain guides ") + name + " --format json");
    REQUIRE(ended.code == 0);
    const json rows = json::parse(ended.output)["sweep"];
    REQUIRE(rows.size() == 12);
    CHECK(rows[0]["name"] == "gpt2 one node");
    CHECK(rows[0]["parameters"] == 124439808);
    CHECK(rows[11]["devices"] == 16);
    for (const json& row : rows) {
      INFO(row.dump());
      // Gradients and moments of 7 of 8 ranks are elsewhere: 12 of some 20 bytes per parameter.
      CHECK(row["sharded_memory_bytes"] < row["memory_bytes"]);
      const bool slow = row["name"].get<std::string>().ends_with("slow network");
      const bool small_on_nodes = row["name"] == "gpt2 two nodes";
      CHECK((row["sharded_step_time_s"] > row["step_time_s"]) == (slow || small_on_nodes));
    }
  }
  CHECK(json::parse(
            run_program("explain guides ddp-aggregates-on-a-root --format json").output)["sweep"]
            .is_null());
}

}  // namespace guides_test
