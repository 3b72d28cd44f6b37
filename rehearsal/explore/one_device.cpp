// The same training on one device, beside that of all ranks.
#include "rehearsal/explore/one_device.hpp"
#include "rehearsal/findings/single_device_findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/trainer/prepare/wrapped_optimizer.hpp"
#include "properties/logged/value_text.hpp"
#include "rehearsal/findings/invariants.hpp"
#include "rehearsal/findings/known_differences.hpp"
#include "rehearsal/findings/logged_metrics.hpp"
#include "rehearsal/findings/monitored.hpp"
#include "rehearsal/findings/rank_dependence.hpp"
#include "rehearsal/run/configuration.hpp"

namespace lockstep::cli {

namespace {

std::string name_of_accelerator(const Placement& placement) {
  return placement.cpu ? "cpu" : placement.device == DeviceType::tpu ? "tpu" : "gpu";
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
  } else if (placement.lightning < Version{1, 7, 0}) {  // it may
    settings.emplace_back("trainer.accelerator=" + name_of_accelerator(placement));
  }
  if (placement.device == DeviceType::tpu) {
    settings.emplace_back("trainer.tpu_cores=null");
    settings.emplace_back("trainer.accelerator=tpu");
  }
  if (placement.lightning < Version{1, 7, 0}) {  // and so may a plugin
    settings.emplace_back("trainer.plugins=[]");
  }
  if (rehearsal.run.preparation.configured_clipping) {  // RunRequest::clips_as takes its place
    settings.emplace_back("trainer.gradient_clip_val=null");
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
  if (scenario.optimizers.empty()) {
    scenario.optimizers.push_back({"SGD", {}, {}});  // as the defaults fill it in
  }
  for (Object& optimizer : scenario.optimizers) {
    std::erase_if(optimizer.arguments, [](const ObjectArgument& argument) {
      return argument.name == "scaling" || argument.name == "lr" || argument.name.empty();
    });
    optimizer.arguments.push_back({"lr", PlainValue{rate, optimizer.place}, optimizer.place});
  }
}

// One device holds the whole state of its optimizer.
void keep_whole_optimizers(Scenario& scenario) {
  for (Object& optimizer : scenario.optimizers) {
    optimizer = wrapped_optimizer(optimizer).value_or(optimizer);
    if (optimizer.name == "DeepSpeedCPUAdam") {  // it offloads nothing
      optimizer.name = "FusedAdam";
      for (ObjectArgument& argument : optimizer.arguments) {
        argument.name = argument.name == "adamw_mode" ? "adam_w_mode" : argument.name;
      }
    } else if (optimizer.name == "DeepSpeedCPULion") {
      optimizer.name = "FusedLion";
    }
  }
}

// The strategy that makes them of its configuration is not there.
void keep_configured_objects(const Preparation& preparation, Scenario& scenario) {
  if (preparation.configured_optimizer) {
    scenario.optimizers = preparation.scenario->optimizers;
    scenario.schedulers = preparation.scenario->schedulers;
  } else if (preparation.configured_scheduler) {
    scenario.schedulers = preparation.scenario->schedulers;
  }
}

// Why a run gave nothing to compare with.
std::string reason_of(const OneRun& run) {
  const auto problem = std::ranges::find_if(run.problems, &Problem::stops);
  return problem != run.problems.end() ? problem->message
         : run.result.hung             ? "it waits forever there"
         : !run.undecided.empty()      ? run.undecided
                                       : "it could not be started";
}

LoadedScenarios load_for_one_device(const CaseSource& source, const Rehearsal& rehearsal,
                                    bool whole) {
  LoadedScenarios loaded = source.load(one_device_settings(rehearsal, whole));
  if (loaded.ok()) {
    keep_configured_objects(rehearsal.run.preparation, loaded.scenarios.front());
    keep_whole_optimizers(loaded.scenarios.front());
  }
  const LearningRate& rate = rehearsal.run.preparation.learning_rate;
  if (loaded.ok() && (rate.script_scales || rate.framework_scales)) {
    keep_learning_rate(loaded.scenarios.front(),
                       rehearsal.run.preparation.plan.optimizers.front().lr);
  }
  return loaded;
}

const RankEnd* raised_end(const OneRun& run) {
  const auto end = std::ranges::find(run.result.ends, RankEnd::Kind::raised, &RankEnd::kind);
  return end == run.result.ends.end() ? nullptr : &*end;
}

bool has_raised(const OneRun& run) { return raised_end(run) != nullptr; }

// "`item` in on_train_epoch_end (a.yaml:9:56)", or what the trainer does there.
std::string place_of_end(const OneRun& run, const RankEnd& end) {
  const Site* const site = run.preparation.sites.find(end.site);
  if (site == nullptr) {
    return "the training";
  }
  const std::string hook = site->hook.empty() ? "" : " in " + site->hook;
  return site->line == 0 ? site->description + hook
                         : fmt::format("`{}`{} ({}:{}:{})", site->description, hook, site->file,
                                       site->line, site->column);
}

// Why the runs end in different epochs.
std::string why_other_epochs(const OneRun& here, const OneRun& one) {
  const RankEnd* const end = raised_end(one);
  if (raised_end(here) != nullptr) {
    return "an exception ends the training of the ranks";
  }
  return end == nullptr
             ? "it stops in a different epoch"
             : fmt::format("there {} raises '{}'", place_of_end(one, *end), end->message);
}

/// What runs of one device give.
struct OneDevice {
  OneRun run;
  SingleDevice logged;
  bool is_whole = false;  ///< it evaluated each loader in one batch
  Scenario scenario{};
  RunRequest request{};
};

bool evaluates_repeated_samples(const OneRun& run) {
  return std::ranges::any_of(std::to_array<const char*>({"validation", "test"}),
                             [&run](const char* stage) {
                               const auto counts = last_sample_counts(run, stage);
                               return counts && (counts->repeated > 0 || counts->missed > 0);
                             });
}

// Evaluates what the ranks evaluate, each sample as often as they do: whatever is the same there is
// explained by the samples.
void add_metrics_of_taken_samples(const Scenario& scenario, const Rehearsal& rehearsal,
                                  RunRequest request, OneDevice& one) {
  if (!one.is_whole || !evaluates_repeated_samples(rehearsal.run)) {
    return;
  }
  request.joins_evaluation = true;
  const OneRun run = run_once(scenario, request);
  if (run.ran && !run.result.hung && run.undecided.empty() && !has_raised(run)) {
    one.logged.of_taken_samples = run.preparation.log->ranks.front().metrics;
  }
}

// Says in the finding about samples which values they change. Where ranks evaluate all samples
// alike and nothing that is logged changes by it, no wrong number is kept.
void tell_values_in_samples(const std::vector<GlobalMetric>& logged,
                            std::vector<Finding>& findings) {
  const auto told = std::ranges::find_if(findings, [](const Finding& finding) {
    return finding.code == "LS304" && !finding.when.starts_with("in training");
  });
  if (told == findings.end()) {
    return;
  }
  bool is_known = false;
  bool is_harmless = true;
  for (const GlobalMetric& metric : logged) {
    const std::optional<bool> agrees = agrees_with_one_device(metric);
    if (metric.in_training || !agrees) {
      continue;
    }
    is_known = true;
    is_harmless = is_harmless && *agrees;
    if (is_explained_by_samples(metric)) {
      told->follows.push_back(fmt::format("`{}` is {}; with each sample once it is {}", metric.key,
                                          value_text(metric.ranks.front().value),
                                          value_text(*metric.single_device)));
    }
  }
  if (is_known && is_harmless && told->level == Level::error) {
    told->level = Level::warning;
    told->follows.push_back("what is logged is that of all samples all the same");
  }
}

// What logged values are, told once more with what one device gives.
void judge_metrics(Rehearsal& rehearsal, const SingleDevice& single) {
  std::vector<Finding> found = metric_findings(rehearsal.run, single);
  rehearsal.logged = logged_metrics(rehearsal.run, &single);
  std::erase_if(rehearsal.findings, [&found](const Finding& known) {
    return std::any_of(found.begin(), found.end(), [&known](const Finding& other) {
      return known.code == other.code && known.site() == other.site();
    });
  });
  std::move(found.begin(), found.end(), std::back_inserter(rehearsal.findings));
  tell_values_in_samples(rehearsal.logged, rehearsal.findings);
  sort_findings(rehearsal.findings);
  tell_decisions(rehearsal.run, rehearsal.findings);
}

// A difference that user code makes by the rank is none that one device could repeat.
std::string not_judged_of(const Rehearsal& rehearsal, std::vector<Finding>& different) {
  const std::string by_design = different.empty() ? "" : designed_difference(rehearsal.run);
  if (!by_design.empty()) {
    different.clear();
    return "not judged: " + by_design;
  }
  const std::optional<RankDependence> cause =
      different.empty() ? std::nullopt : rank_dependence_of(rehearsal.run);
  if (!cause) {
    return "";
  }
  different.clear();
  return fmt::format("not judged: {}, line {}", cause->text, cause->place.line);
}

std::optional<OneDevice> run_one_device(const CaseSource& source, const RehearseRequest& request,
                                        Rehearsal& rehearsal, std::string& left_out) {
  OneDevice one;
  one.is_whole = wants_reference(rehearsal.run);
  LoadedScenarios loaded = load_for_one_device(source, rehearsal, one.is_whole);
  if (!loaded.ok()) {
    left_out = loaded.diagnostics.front().message;
    return std::nullopt;
  }
  tell(request.progress.get(), "on one device");
  RunRequest once{World::simulated, false, {}, request.deadline.get()};
  once.stands_for = rehearsal.run.preparation.data_parallel_size;
  once.clips_as = rehearsal.run.preparation.configured_clipping;
  once.gathers_rows = rehearsal.run.preparation.placement.traits.gathers_rows;
  once.groups_experts = rehearsal.run.preparation.groups_experts;
  once.scales_for = {rehearsal.results.devices,
                     rehearsal.run.preparation.log->ranks.front().skipped_steps};
  once.scales_no_loss =
      rehearsal.run.preparation.placement.traits.loss_scaling == LossScaling::not_modelled;
  one.run = run_once(loaded.scenarios.front(), once);
  if (one.is_whole && one.run.ran && has_raised(one.run)) {  // a batch of all samples is too large
    one.is_whole = false;
    loaded = load_for_one_device(source, rehearsal, one.is_whole);
    one.run = run_once(loaded.scenarios.front(), once);
  }
  if (rehearsal.undecided.empty()) {
    rehearsal.undecided = one.run.undecided;
  }
  if (!one.run.ran || one.run.result.hung || !one.run.undecided.empty()) {
    left_out = "the scenario does not run on one: " + reason_of(one.run);
    return std::nullopt;
  }
  one.logged.metrics = one.run.preparation.log->ranks.front().metrics;
  one.scenario = loaded.scenarios.front();
  one.request = once;
  add_metrics_of_taken_samples(loaded.scenarios.front(), rehearsal, once, one);
  return one;
}

// Roundings of one step are carried into the next. Where weights grow apart by them, no number of
// operations bounds how far: the one device is run once more with other roundings.
std::string rounding_that_carries(Rehearsal& rehearsal, const OneDevice& one,
                                  const std::vector<Finding>& different) {
  if (different.empty() || !rehearsal.run.preparation.options.numerics) {
    return "";
  }
  RunRequest request = one.request;
  request.rounds_otherwise = true;
  const OneRun otherwise = run_once(one.scenario, request);
  if (!otherwise.ran || otherwise.result.hung || !otherwise.undecided.empty() ||
      !single_device_findings(rehearsal.run, one.run, &otherwise).empty()) {
    return "";
  }
  rehearsal.rounding_carries = true;
  return fmt::format(
      "its weights are not judged after {} steps: where each step rounds otherwise, it ends as far "
      "from itself",
      rehearsal.run.preparation.log->ranks.front().steps);
}

/// How far rounding to a narrow type may carry weights, relative to the largest; 0 without one.
double carried_by_narrow_type(const OneRun& run, const EqualityRule& rule) {
  return rule.narrow_operations == 0
             ? 0
             : rounding_bound(rule, run.preparation.plan.parameter_dtype, 1);
}

// What was found to be equal is so within what rounding explains.
void tell_what_was_compared(Rehearsal& rehearsal, bool is_equal) {
  constexpr double told_from = 0.02;
  const EqualityRule rule = equality_rule(rehearsal.run);
  const double carried = carried_by_narrow_type(rehearsal.run, rule);
  Coverage& coverage = rehearsal.coverage;
  if (!is_equal || carried < told_from) {
    coverage.looked_at.push_back("the same samples on one device");
  } else if (carried < 1) {
    coverage.looked_at.push_back(
        fmt::format("the same samples on one device (weights to within {:.0f} % of the largest, as "
                    "{} steps round to {})",
                    100 * carried, rule.steps, name_of(rule.narrow_dtype)));
  } else {
    coverage.not_looked_at.push_back(
        fmt::format("one device (rounding to {} in {} steps explains any difference of weights; "
                    "trainer.precision=32-true compares them)",
                    name_of(rule.narrow_dtype), rule.steps));
  }
}

}  // namespace

bool wants_one_device(const Rehearsal& rehearsal) {
  const Scenario& scenario = *rehearsal.scenario;
  const bool asked = !scenario.verify || value_or(scenario.verify->single_device, true);
  return asked && rehearsal.results.devices > 1 && scenario.faults.empty() && !rehearsal.hung &&
         rehearsal.undecided.empty() &&
         (rehearsal.run.preparation.options.numerics || wants_reference(rehearsal.run));
}

void compare_with_one_device(const CaseSource& source, const RehearseRequest& request,
                             Rehearsal& rehearsal) {
  const auto leave_out = [&](const std::string& why) {
    rehearsal.coverage.not_looked_at.push_back("one device (" + why + ")");
  };
  const LoaderSpec* loader = loader_of(rehearsal.run, "train");
  if (loader == nullptr || has_own_batches(*loader) || !rehearsal.results.effective_batch_size) {
    return leave_out("ranks have batches of their own");
  }
  std::string left_out;
  std::optional<OneDevice> one = run_one_device(source, request, rehearsal, left_out);
  if (!one) {
    return leave_out(left_out);
  }
  const RankLog& here = rehearsal.run.preparation.log->ranks.front();
  const RankLog& there = one->run.preparation.log->ranks.front();
  if (there.epochs != here.epochs) {
    return leave_out(why_other_epochs(rehearsal.run, one->run));
  }
  rehearsal.results.single_device = one->logged.metrics;
  const bool same_steps = there.steps == here.steps;
  std::vector<Finding> different =
      same_steps ? single_device_findings(rehearsal.run, one->run) : std::vector<Finding>();
  one->logged.network_is_alike = one->is_whole && same_steps && different.empty();
  judge_metrics(rehearsal, one->logged);
  if (!same_steps) {
    std::string why = "it takes a different number of steps";
    for (const KnownDifference& known : here.known_differences) {
      why += "; " + known.cause;
    }
    return leave_out(why);
  }
  const auto apart = std::find_if(
      rehearsal.findings.begin(), rehearsal.findings.end(),
      [](const Finding& known) { return known.code == "LS305" || known.code == "LS314"; });
  if (apart != rehearsal.findings.end() && !different.empty()) {
    rehearsal.coverage.looked_at.push_back("the same samples on one device");
    apart->follows.push_back("all differ from what one device computes from the same samples");
    return;
  }
  if (const std::string why = not_judged_of(rehearsal, different); !why.empty()) {
    return leave_out(why);
  }
  if (const std::string why = rounding_that_carries(rehearsal, *one, different); !why.empty()) {
    return leave_out(why);
  }
  tell_what_was_compared(rehearsal, different.empty());
  merge_findings(rehearsal, std::move(different), "after training");
}

}  // namespace lockstep::cli
