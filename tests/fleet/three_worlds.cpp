#include "tests/fleet/three_worlds.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "backend/gloo/world.hpp"
#include "rehearsal/case_source.hpp"
#include "rehearsal/findings/invariants.hpp"
#include "rehearsal/measure/compare.hpp"

namespace lockstep::test {

namespace {

constexpr std::chrono::seconds long_deadline{8};

std::vector<Finding> findings_in(const cli::OneRun& run) {
  return cli::findings_of(run, cli::World::processes);
}

std::string reason_not_run(const cli::OneRun& run) {
  if (!run.world_failure.empty()) {
    return run.world_failure;
  }
  return run.problems.empty() ? run.undecided : run.problems.front().message;
}

void add(std::vector<std::string>& to, const std::string& what,
         const std::vector<std::string>& from) {
  for (const std::string& each : from) {
    to.push_back(what + ": " + each);
  }
}

}  // namespace

Scenario load_scenario(const Asked& asked) {
  cli::CaseSource source;
  source.path = asked.path;
  source.set = asked.set;
  if (!asked.scenario_case.empty()) {
    source.scenario_case = asked.scenario_case;
  }
  if (!asked.text.empty()) {
    source.reader = [text = asked.text](const std::string&,
                                        size_t) -> std::variant<std::string, FileError> {
      return text;
    };
  }
  LoadedScenarios loaded = source.load();
  if (!loaded.ok()) {
    throw std::invalid_argument(loaded.diagnostics.front().message + "\n" + asked.text);
  }
  return std::move(loaded.scenarios.front());
}

ThreeWorlds::ThreeWorlds(std::chrono::milliseconds deadline)
    : deadline_(deadline), fleet_(LOCKSTEP_RANK_PROGRAM) {}

cli::OneRun ThreeWorlds::run_processes(const Scenario& scenario, const Asked& asked,
                                       std::chrono::milliseconds deadline) {
  const cli::RealWorld world = [&](const Preparation& preparation, const ProgramOfRank&) {
    cli::FleetCase one;
    one.path = asked.path;
    one.text = asked.text;
    one.scenario_case = asked.scenario_case;
    one.set = asked.set;
    one.hang_after = deadline;
    return fleet_.run(one, preparation);
  };
  cli::RunRequest request;
  request.world = cli::World::processes;
  request.lists = true;
  request.real = &world;
  return cli::run_once(scenario, request);
}

cli::OneRun ThreeWorlds::run_threads(const Scenario& scenario, const Journal* choices,
                                     std::chrono::milliseconds deadline) {
  const cli::RealWorld world = [&](const Preparation& preparation, const ProgramOfRank& program) {
    backend::GlooOptions gloo;
    gloo.deadline = deadline;
    gloo.fleet = &threads_;
    cli::RealRun real;
    real.result = backend::run(preparation.options, gloo, program);
    return real;
  };
  cli::RunRequest request;
  request.world = cli::World::processes;  // a real one, that this test provides
  request.lists = true;
  request.real = &world;
  request.replay = choices;
  return cli::run_once(scenario, request);
}

std::vector<std::string> differences_from_simulation(const Scenario& scenario,
                                                     const cli::OneRun& real, bool exact,
                                                     bool* bit_for_bit) {
  std::vector<std::string> found;
  const cli::Comparison comparison =
      cli::compare(scenario, real, findings_in(real), false, nullptr);
  if (!comparison.not_compared.empty()) {
    found.push_back("not compared: " + comparison.not_compared);
  }
  for (const cli::Point& point : comparison.points) {
    add(found, point.name, point.differences);
    const bool rounded = point.name == "values" && point.extent.starts_with("within");
    if (rounded && exact) {
      found.push_back("values are equal " + point.extent + " only");
    }
    if (rounded && bit_for_bit != nullptr) {
      *bit_for_bit = false;
    }
  }
  return found;
}

Agreement ThreeWorlds::judge(const Asked& asked) {
  Agreement agreement;
  const Scenario scenario = load_scenario(asked);
  cli::OneRun real = run_processes(scenario, asked, deadline_);
  if (!real.ran) {
    agreement.failures.push_back("not run by LibTorch: " + reason_not_run(real));
    return agreement;
  }
  agreement.failures = differences_from_simulation(scenario, real, false, &agreement.bit_for_bit);
  if (real.result.hung && !agreement.failures.empty()) {
    // A slow machine is no hang: only one that lasts is compared with the simulator.
    real = run_processes(scenario, asked, long_deadline);
    agreement.failures = differences_from_simulation(scenario, real, false, &agreement.bit_for_bit);
  }
  add(agreement.failures, "LibTorch", std::exchange(agreement.failures, {}));
  cli::OneRun threads = run_threads(scenario, real.result.journal.get(), deadline_);
  if (threads.ran && threads.result.hung && !real.result.hung) {
    threads = run_threads(scenario, real.result.journal.get(), long_deadline);
  }
  if (threads.ran) {
    add(agreement.failures, "threads", differences_from_simulation(scenario, threads, true));
  } else {
    agreement.failures.push_back("not run by threads: " + reason_not_run(threads));
  }
  agreement.hung = real.result.hung;
  agreement.operations = real.result.operations;
  for (const Finding& finding : findings_in(real)) {
    agreement.findings.push_back(finding.code);
  }
  return agreement;
}

}  // namespace lockstep::test
