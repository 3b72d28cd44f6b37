// Strategies that shard, those of Bagua, pipelines and parameter servers, as scenarios: threads
// over Gloo do what the simulator does, bit for bit.
#include <catch2/catch.hpp>

#include "rehearsal/case_source.hpp"
#include "rehearsal/findings/invariants.hpp"
#include "rehearsal/measure/compare.hpp"
#include "tests/conformance/gloo_world.hpp"

using namespace lockstep;

namespace sharded_strategies_test {

namespace {

using Texts = std::vector<std::string>;

cli::OneRun on_threads(const Scenario& scenario, backend::Fleet& fleet) {
  const cli::RealWorld world = [&](const Preparation& preparation, const ProgramOfRank& program) {
    cli::RealRun real;
    real.result = backend::run(preparation.options,
                               backend::ends_after(std::chrono::seconds(10), &fleet), program);
    return real;
  };
  cli::RunRequest request;
  request.world = cli::World::processes;  // a real one, that this test provides
  request.lists = true;
  request.real = &world;
  return cli::run_once(scenario, request);
}

Texts differences(const Scenario& scenario, const cli::OneRun& real) {
  Texts found;
  const std::vector<Finding> findings = cli::findings_of(real, cli::World::processes);
  for (const Finding& finding : findings) {
    found.push_back(finding.code + " " + finding.title);
  }
  const cli::Comparison comparison = cli::compare(scenario, real, findings, false, nullptr);
  if (!comparison.not_compared.empty()) {
    found.push_back("not compared: " + comparison.not_compared);
  }
  for (const cli::Point& point : comparison.points) {
    found.insert(found.end(), point.differences.begin(), point.differences.end());
    if (point.name == "values" && point.extent != "bit for bit") {
      found.push_back("values: " + point.extent + point.not_compared);
    }
  }
  return found;
}

// Two host threads of a rank call in communicators of their own: in which order depends on timing.
bool is_of_two_communicators(const std::string& difference) {
  return difference.find("LS106") != std::string::npos;
}

void check_file(const std::string& file, size_t scenarios) {
  cli::CaseSource source;
  source.path = LOCKSTEP_SOURCE_DIR "/tests/data/" + file;
  const LoadedScenarios loaded = source.load();
  REQUIRE(loaded.ok());
  CHECK(loaded.scenarios.size() == scenarios);
  backend::Fleet fleet;
  for (const Scenario& scenario : loaded.scenarios) {
    INFO(scenario.name);
    const cli::OneRun real = on_threads(scenario, fleet);
    REQUIRE(real.ran);
    Texts found = differences(scenario, real);
    if (scenario.name.starts_with("async")) {
      std::erase_if(found, is_of_two_communicators);
    }
    CHECK(found == Texts{});
  }
}

}  // namespace

TEST_CASE("every strategy that shards does on threads what it does in the simulator") {
  check_file("sharded.yaml", 16);
}

// The rounds of async come of the threads' timing; the simulator repeats them by their choices.
TEST_CASE("every algorithm of Bagua does on threads what it does in the simulator") {
  check_file("bagua.yaml", 16);
}

TEST_CASE("every schedule of a pipeline does on threads what it does in the simulator") {
  check_file("pipeline.yaml", 18);
}

// Which worker's message comes first is the threads' timing; the simulator repeats it.
TEST_CASE("parameter servers do on threads what they do in the simulator") {
  check_file("parameter-server.yaml", 8);
}

}  // namespace sharded_strategies_test
