#include "cli/rehearse.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/advice.hpp"
#include "cli/configuration.hpp"
#include "cli/consequences.hpp"
#include "cli/explore.hpp"
#include "cli/explorer_port.hpp"
#include "cli/finding_place.hpp"
#include "cli/invariants.hpp"
#include "cli/logged_metrics.hpp"
#include "cli/measure.hpp"
#include "cli/not_modelled.hpp"
#include "cli/one_device.hpp"
#include "cli/prediction_range.hpp"
#include "cli/remedies.hpp"
#include "cli/result_value.hpp"
#include "cli/smallest.hpp"
#include "cli/without_effect.hpp"
#include "io/scenario/spelling.hpp"
#include "model/scenario/finding_codes.hpp"

namespace lockstep::cli {

namespace {

constexpr int64_t default_max_schedules = 10'000;

int64_t schedules_max(const Scenario& scenario, const RehearseRequest& request) {
  if (!request.explore) {
    return 1;
  }
  const int64_t asked = scenario.verify
                            ? value_or(scenario.verify->max_schedules, default_max_schedules)
                            : default_max_schedules;
  return std::max<int64_t>(1, asked);
}

ExploreRequest explore_request(const Scenario& scenario, const RehearseRequest& request) {
  // A diagnosis needs to know what waits behind what.
  const bool lists = request.explore || is_real(request.world);
  return {request.world,
          schedules_max(scenario, request),
          lists,
          request.deadline,
          request.hang_after,
          request.real,
          request.progress,
          request.journal_bytes_max,
          request.device};
}

void add_coverage(Rehearsal& rehearsal, const Explored& explored) {
  Coverage& coverage = rehearsal.coverage;
  coverage.schedules += explored.schedules;
  coverage.complete = coverage.complete && explored.complete;
  coverage.free = coverage.free || explored.free;
  for (const std::string& text : explored.ways) {
    if (std::count(coverage.looked_at.begin(), coverage.looked_at.end(), text) == 0) {
      coverage.looked_at.push_back(text);
    }
  }
  for (const std::string& text : explored.left_out) {
    if (std::count(coverage.not_looked_at.begin(), coverage.not_looked_at.end(), text) == 0) {
      coverage.not_looked_at.push_back(text);
    }
  }
  rehearsal.hung = rehearsal.hung || explored.hung;
  if (rehearsal.undecided.empty()) {
    rehearsal.undecided = explored.undecided;
  }
}

void explore_world_sizes(const CaseSource& source, const RehearseRequest& request,
                         Rehearsal& rehearsal) {
  const Scenario& scenario = *rehearsal.scenario;
  if (!scenario.verify || !request.explore) {
    return;
  }
  for (const Placed<int64_t>& size : scenario.verify->world_sizes) {
    const int32_t own = rehearsal.run.preparation.options.world_size;
    if (size.value == own) {
      continue;
    }
    const std::string key = scenario.is_bare_program() ? "cluster.ranks" : "trainer.devices";
    std::vector<std::string> settings = {fmt::format("{}={}", key, size.value)};
    if (scenario.launcher) {
      settings.emplace_back("launcher=null");  // it starts as many as the scenario's own size
    }
    if (!scenario.is_bare_program()) {
      settings.emplace_back("trainer.gpus=null");
    }
    const LoadedScenarios loaded = source.load(settings);
    if (!loaded.ok()) {
      rehearsal.problems.push_back({Problem::Kind::invalid, size.place,
                                    loaded.diagnostics.front().message,
                                    loaded.diagnostics.front().remedy});
      continue;
    }
    tell(request.progress, fmt::format("with {} ranks", size.value));
    const Scenario& variant = loaded.scenarios.front();
    Explored explored = explore(variant, explore_request(variant, request));
    if (!explored.first.ran) {
      for (const Problem& problem : explored.first.problems) {
        if (problem.stops()) {
          rehearsal.problems.push_back(
              {problem.kind, size.place,
               fmt::format("with {} ranks: {}", size.value, problem.message), problem.remedy,
               problem.code});
        }
      }
      continue;
    }
    rehearsal.coverage.world_sizes.push_back(explored.first.preparation.options.world_size);
    rehearsal.sites.merge(explored.sites);
    add_coverage(rehearsal, explored);
    merge_findings(rehearsal, std::move(explored.findings),
                   fmt::format("with {} ranks", size.value));
  }
}

// One real run takes one way, and its times are those of this machine.
void tell_limits_of_threads(Rehearsal& rehearsal) {
  std::vector<std::string>& texts = rehearsal.coverage.not_looked_at;
  texts.push_back("orders that did not come up (--world simulated)");
  texts.push_back("not judged in this world: LS402 (times are those of this machine)");
  if (!unknown_sites(*rehearsal.scenario).empty()) {
    texts.push_back("not judged in this world: LS109 (`unknown` is taken as false)");
  }
}

void add_smallest(const CaseSource& source, const RehearseRequest& request, Rehearsal& rehearsal) {
  for (Finding& finding : rehearsal.findings) {
    if (finding.level == Level::error && finding.code.starts_with("LS10")) {
      finding.smallest = smallest_variant(source, rehearsal, finding, request);
    }
  }
}

// Labels of a strategy are known once it has taken a step.
void check_transfers(Rehearsal& rehearsal, const ResultName& result) {
  const bool own = result.scenario_case.empty() || result.scenario_case == rehearsal.scenario->name;
  const bool told =
      rehearsal.results.prediction.steps > 0 && !rehearsal.hung && rehearsal.undecided.empty();
  if (!own || !told || !result.name.starts_with("transfers")) {
    return;
  }
  const std::vector<std::string> names = transfer_names(rehearsal.results);
  if (std::find(names.begin(), names.end(), result.key) == names.end()) {
    const std::vector<std::string_view> legal(names.begin(), names.end());
    rehearsal.problems.push_back(
        {Problem::Kind::invalid, result.place,
         fmt::format("{} has no transfers `{}`", rehearsal.results.strategy, result.key),
         spelling_remedy(result.key, legal)});
  }
}

// What only the prepared run can tell: expectations that nothing will ever meet.
void check_expectations(Rehearsal& rehearsal) {
  const int32_t ranks = rehearsal.run.preparation.options.world_size;
  for (const Expectation& expectation : rehearsal.scenario->expectations) {
    if (expectation.rank && *expectation.rank >= ranks) {
      rehearsal.problems.push_back(
          {Problem::Kind::invalid, expectation.place,
           fmt::format("there is no rank {}: the run has {}", *expectation.rank, ranks),
           ranks == 1 ? "write `on rank 0`" : fmt::format("ranks are 0 to {}", ranks - 1)});
    }
    if (is_planned_code(expectation.code)) {
      rehearsal.problems.push_back({Problem::Kind::unsupported, expectation.place,
                                    fmt::format("nothing looks for {} yet", expectation.code),
                                    "remove the expectation"});
    }
    for (const ResultName& result : expectation.results) {
      const bool of_range = result.name.ends_with(".low") || result.name.ends_with(".high");
      if (of_range && !is_real(rehearsal.world) && !rehearsal.run.calibration) {
        rehearsal.problems.push_back(
            {Problem::Kind::unsupported, result.place,
             fmt::format("nothing gives `{}`: without a calibration a prediction has no range",
                         result.name),
             "measure this machine: lockstep calibrate -o this-machine.json, and name the file: "
             "cluster: {calibration: this-machine.json}"});
      }
      if (const std::string why = not_there_yet(result.name); !why.empty()) {
        rehearsal.problems.push_back({Problem::Kind::unsupported, result.place,
                                      fmt::format("nothing gives `{}`: {}", result.name, why),
                                      "remove the expectation"});
      }
      check_transfers(rehearsal, result);
    }
  }
}

void add_notes_on_unused(Rehearsal& rehearsal) {
  if (!is_real(rehearsal.world)) {
    const std::vector<Problem> unused = notes_on_unused(rehearsal.run);
    rehearsal.problems.insert(rehearsal.problems.end(), unused.begin(), unused.end());
  }
}

void complete_findings(Rehearsal& rehearsal) {
  fold_consequences(rehearsal.run, rehearsal.findings);
  place_findings(rehearsal.run, rehearsal.findings);
  complete_remedies(rehearsal.run, rehearsal.findings);
}

}  // namespace

Rehearsal rehearse(const CaseSource& source, std::shared_ptr<const Scenario> scenario,
                   std::shared_ptr<const Sources> sources, const RehearseRequest& request) {
  Rehearsal rehearsal;
  rehearsal.scenario = std::move(scenario);
  rehearsal.sources = std::move(sources);
  rehearsal.world = request.world;
  CaseSource own = source;
  own.scenario_case =
      rehearsal.scenario->name.empty() ? std::nullopt : std::optional(rehearsal.scenario->name);
  Explored explored = explore(*rehearsal.scenario, explore_request(*rehearsal.scenario, request));
  rehearsal.problems = explored.first.problems;
  rehearsal.sites = explored.sites;
  rehearsal.sites.merge(explored.first.preparation.sites);
  rehearsal.run = std::move(explored.first);
  rehearsal.undecided = rehearsal.run.undecided;
  rehearsal.findings = findings_of(rehearsal.problems, rehearsal.sites);
  if (rehearsal.run.ran) {
    const std::vector<Problem> lacks = not_modelled(rehearsal.run);
    rehearsal.run.ran = lacks.empty();
    rehearsal.problems.insert(rehearsal.problems.end(), lacks.begin(), lacks.end());
  }
  if (!rehearsal.run.ran) {
    return rehearsal;
  }
  rehearsal.coverage.world_sizes = {rehearsal.run.preparation.options.world_size};
  rehearsal.coverage.epochs = rehearsal.run.preparation.log->ranks.front().epochs;
  add_coverage(rehearsal, explored);
  add_notes_on_unused(rehearsal);
  rehearsal.findings.insert(rehearsal.findings.end(),
                            std::make_move_iterator(explored.findings.begin()),
                            std::make_move_iterator(explored.findings.end()));
  if (is_real(rehearsal.world)) {
    tell_limits_of_threads(rehearsal);
  }
  // What a run has given until it was stopped is no result.
  rehearsal.results =
      rehearsal.run.undecided.empty() ? measure(rehearsal.run) : configuration_of(rehearsal.run);
  if (rehearsal.run.calibration && !rehearsal.hung && rehearsal.undecided.empty()) {
    tell(request.progress, "the range");
    add_range(*rehearsal.scenario, {World::simulated, false, {}, request.deadline},
              rehearsal.results.prediction);
  }
  check_expectations(rehearsal);
  if (rehearsal.invalid()) {
    rehearsal.run.ran = false;
    return rehearsal;
  }
  rehearsal.logged = logged_metrics(rehearsal.run, nullptr);
  explore_world_sizes(own, request, rehearsal);
  if (request.explore && wants_one_device(rehearsal)) {
    compare_with_one_device(own, request, rehearsal);
  }
  complete_findings(rehearsal);
  if (request.advise) {
    rehearsal.results.advice = advise(rehearsal, request);
  }
  if (request.find_smallest) {
    add_smallest(own, request, rehearsal);
  }
  return rehearsal;
}

}  // namespace lockstep::cli
