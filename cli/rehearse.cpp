#include "cli/rehearse.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/advice.hpp"
#include "cli/configuration.hpp"
#include "cli/explore.hpp"
#include "cli/explorer_port.hpp"
#include "cli/invariants.hpp"
#include "cli/logged_metrics.hpp"
#include "cli/measure.hpp"
#include "cli/monitored.hpp"
#include "cli/not_modelled.hpp"
#include "cli/prediction_range.hpp"
#include "cli/result_value.hpp"
#include "cli/smallest.hpp"
#include "io/scenario/spelling.hpp"
#include "model/scenario/finding_codes.hpp"
#include "properties/shrink.hpp"

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
          request.deadline.get(),
          request.hang_after,
          request.real,
          request.progress.get(),
          request.journal_bytes_max,
          request.device};
}

void merge_findings(Rehearsal& rehearsal, std::vector<Finding> more, const std::string& when) {
  for (Finding& finding : more) {
    const bool known =
        std::any_of(rehearsal.findings.begin(), rehearsal.findings.end(),
                    [&](const Finding& other) { return same_defect(finding, other); });
    if (!known) {
      finding.when = when + (finding.when.empty() ? "" : ", " + finding.when);
      rehearsal.findings.push_back(std::move(finding));
    }
  }
  sort_findings(rehearsal.findings);
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
    tell(request.progress.get(), fmt::format("with {} ranks", size.value));
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

// The same training on one device, which joins the batches of all ranks (RunRequest::stands_for).
// `whole`: what is evaluated goes through in one batch, so that metrics are those of all samples.
std::vector<std::string> one_device_settings(const Rehearsal& rehearsal, bool whole) {
  std::vector<std::string> settings = {"trainer.devices=1",
                                       "trainer.num_nodes=1",
                                       "trainer.strategy=auto",
                                       "launcher=null",
                                       "env=null",
                                       "trainer.gpus=null",
                                       "trainer.num_processes=null",
                                       "cluster.occupied=null",
                                       "faults=[]"};
  const Placement& placement = rehearsal.run.preparation.placement;
  if (placement.lightning < Version{1, 5, 0}) {  // `accelerator` names the strategy there
    settings.insert(settings.end(),
                    {"trainer.accelerator=null", "trainer.strategy=null", "trainer.devices=null",
                     placement.cpu ? "trainer.num_processes=1" : "trainer.gpus=1"});
  }
  for (const auto& [stage, key] : {std::pair("validation", "val"), std::pair("test", "test")}) {
    const std::optional<int64_t> samples = samples_of_stage(rehearsal.run, stage);
    if (whole && samples.value_or(0) > 0 && logs_in_stage(rehearsal.run, stage)) {
      settings.push_back(fmt::format("data.{}.batch_size={}", key, *samples));
    }
  }
  return settings;
}

// One device takes the steps of all, so it takes them at their rate.
void keep_learning_rate(Scenario& scenario, double rate) {
  for (Object& optimizer : scenario.optimizers) {
    std::erase_if(optimizer.arguments, [](const ObjectArgument& argument) {
      return argument.name == "scaling" || argument.name == "lr" || argument.name.empty();
    });
    optimizer.arguments.push_back({"lr", PlainValue{rate, optimizer.place}, optimizer.place});
  }
}

LoadedScenarios load_for_one_device(const CaseSource& source, const Rehearsal& rehearsal,
                                    bool whole) {
  LoadedScenarios loaded = source.load(one_device_settings(rehearsal, whole));
  if (loaded.ok() && rehearsal.run.preparation.learning_rate.script_scales) {
    keep_learning_rate(loaded.scenarios.front(),
                       rehearsal.run.preparation.plan.optimizers.front().lr);
  }
  return loaded;
}

bool wants_single_device(const Rehearsal& rehearsal) {
  const Scenario& scenario = *rehearsal.scenario;
  const bool asked = !scenario.verify || value_or(scenario.verify->single_device, true);
  return asked && rehearsal.results.devices > 1 && scenario.faults.empty() && !rehearsal.hung &&
         rehearsal.undecided.empty() &&
         (rehearsal.run.preparation.options.numerics || wants_reference(rehearsal.run));
}

bool has_raised(const OneRun& run) {
  return std::any_of(run.result.ends.begin(), run.result.ends.end(),
                     [](const RankEnd& end) { return end.kind == RankEnd::Kind::raised; });
}

// What logged values are, told once more with what one device gives.
void judge_metrics(Rehearsal& rehearsal, bool network_is_alike) {
  const SingleDevice single{*rehearsal.results.single_device, network_is_alike};
  std::vector<Finding> found = metric_findings(rehearsal.run, single);
  rehearsal.logged = logged_metrics(rehearsal.run, &single);
  std::erase_if(rehearsal.findings, [&found](const Finding& known) {
    return std::any_of(found.begin(), found.end(), [&known](const Finding& other) {
      return known.code == other.code && known.site() == other.site();
    });
  });
  std::move(found.begin(), found.end(), std::back_inserter(rehearsal.findings));
  sort_findings(rehearsal.findings);
  tell_decisions(rehearsal.run, rehearsal.findings);
}

void compare_with_one_device(const CaseSource& source, const RehearseRequest& request,
                             Rehearsal& rehearsal) {
  const auto leave_out = [&](const std::string& why) {
    rehearsal.coverage.not_looked_at.push_back("one device (" + why + ")");
  };
  const LoaderSpec* loader = loader_of(rehearsal.run, "train");
  if (loader == nullptr || loader->batches || !rehearsal.results.effective_batch_size) {
    return leave_out("ranks have batches of their own");
  }
  bool whole = wants_reference(rehearsal.run);
  LoadedScenarios loaded = load_for_one_device(source, rehearsal, whole);
  if (!loaded.ok()) {
    return leave_out(loaded.diagnostics.front().message);
  }
  tell(request.progress.get(), "on one device");
  RunRequest once{World::simulated, false, {}, request.deadline.get()};
  once.stands_for = rehearsal.run.preparation.options.world_size;
  OneRun single = run_once(loaded.scenarios.front(), once);
  if (whole && single.ran && has_raised(single)) {  // a batch of all samples is too large
    whole = false;
    loaded = load_for_one_device(source, rehearsal, whole);
    single = run_once(loaded.scenarios.front(), once);
  }
  if (rehearsal.undecided.empty()) {
    rehearsal.undecided = single.undecided;
  }
  if (!single.ran || single.result.hung || !single.undecided.empty()) {
    return leave_out("the scenario does not run on one");
  }
  if (single.preparation.log->ranks.front().epochs !=
      rehearsal.run.preparation.log->ranks.front().epochs) {
    return leave_out("it stops in another epoch");
  }
  rehearsal.results.single_device = single.preparation.log->ranks.front().metrics;
  const bool same_steps = single.preparation.log->ranks.front().steps ==
                          rehearsal.run.preparation.log->ranks.front().steps;
  std::vector<Finding> different =
      same_steps ? single_device_findings(rehearsal.run, single) : std::vector<Finding>();
  judge_metrics(rehearsal, whole && same_steps && different.empty());
  if (!same_steps) {
    return leave_out("it takes another number of steps");
  }
  rehearsal.coverage.looked_at.push_back("the same samples on one device");
  const auto apart = std::find_if(rehearsal.findings.begin(), rehearsal.findings.end(),
                                  [](const Finding& known) { return known.code == "LS305"; });
  if (apart != rehearsal.findings.end() && !different.empty()) {
    apart->follows.push_back("none of them is what one device computes from the same samples");
    return;
  }
  merge_findings(rehearsal, std::move(different), "after training");
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
    tell(request.progress.get(), "the range");
    add_range(*rehearsal.scenario, {World::simulated, false, {}, request.deadline.get()},
              rehearsal.results.prediction);
  }
  check_expectations(rehearsal);
  if (rehearsal.invalid()) {
    rehearsal.run.ran = false;
    return rehearsal;
  }
  rehearsal.logged = logged_metrics(rehearsal.run, nullptr);
  explore_world_sizes(own, request, rehearsal);
  if (request.explore && wants_single_device(rehearsal)) {
    compare_with_one_device(own, request, rehearsal);
  }
  if (request.advise) {
    rehearsal.results.advice = advise(rehearsal, request);
  }
  if (request.find_smallest) {
    add_smallest(own, request, rehearsal);
  }
  return rehearsal;
}

}  // namespace lockstep::cli
