#include "rehearsal/rehearse.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "io/scenario/names/spelling.hpp"
#include "model/scenario/finding_codes.hpp"
#include "rehearsal/elastic/elastic_job.hpp"
#include "rehearsal/explore/explore.hpp"
#include "rehearsal/explore/explorer_port.hpp"
#include "rehearsal/explore/first_values.hpp"
#include "rehearsal/explore/merge_explored.hpp"
#include "rehearsal/explore/one_device.hpp"
#include "rehearsal/explore/smallest.hpp"
#include "rehearsal/explore/world_sizes.hpp"
#include "rehearsal/findings/consequences.hpp"
#include "rehearsal/findings/finding_place.hpp"
#include "rehearsal/findings/invariants.hpp"
#include "rehearsal/findings/logged_metrics.hpp"
#include "rehearsal/findings/made_up_stop.hpp"
#include "rehearsal/findings/memory_remedy.hpp"
#include "rehearsal/findings/missing_values.hpp"
#include "rehearsal/findings/monitored.hpp"
#include "rehearsal/findings/not_modelled.hpp"
#include "rehearsal/findings/remedies.hpp"
#include "rehearsal/findings/server_remedies.hpp"
#include "rehearsal/findings/without_effect.hpp"
#include "rehearsal/judge/result_value.hpp"
#include "rehearsal/measure/advice.hpp"
#include "rehearsal/measure/measure.hpp"
#include "rehearsal/measure/prediction_range.hpp"
#include "rehearsal/measure/step_alone.hpp"
#include "rehearsal/run/configuration.hpp"
#include "rehearsal/run/kernels.hpp"

namespace lockstep::cli {

namespace {

// One real run takes one way, and its times are those of this machine.
void tell_limits_of_threads(Rehearsal& rehearsal) {
  std::vector<std::string>& texts = rehearsal.coverage.not_looked_at;
  texts.push_back("schedules that did not occur (use --world simulated)");
  texts.push_back("not judged in this world: LS402 (times are those of this machine)");
  if (!unknown_sites(*rehearsal.scenario).empty()) {
    texts.push_back("not judged in this world: LS109 (`unknown` is taken as false)");
  }
}

// What the scenario gives without effect, or what a real run cannot show.
void add_notes_of_world(Rehearsal& rehearsal) {
  if (const std::string missing = missing_values(rehearsal.run); !missing.empty()) {
    rehearsal.coverage.not_looked_at.push_back(missing);
  }
  if (is_real(rehearsal.world)) {
    tell_limits_of_threads(rehearsal);
    return;
  }
  const std::vector<Problem> unused = notes_on_unused(rehearsal.run);
  rehearsal.problems.insert(rehearsal.problems.end(), unused.begin(), unused.end());
}

void add_smallest(const CaseSource& source, const RehearseRequest& request, Rehearsal& rehearsal) {
  for (Finding& finding : rehearsal.findings) {
    if (finding.level == Level::error && finding.code.starts_with("LS10")) {
      finding.smallest = smallest_variant(source, rehearsal, finding, request);
      if (request.deadline != nullptr && request.deadline->passed()) {
        rehearsal.coverage.not_looked_at.push_back(fmt::format(
            "all smaller examples of {} ({})", finding.code, request.deadline->reason()));
        return;
      }
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

// Checks that need the prepared run: expectations that can never pass.
void check_expectations(Rehearsal& rehearsal) {
  const int32_t ranks = rehearsal.run.preparation.options.world_size;
  for (const Expectation& expectation : rehearsal.scenario->expectations) {
    std::vector<int64_t> named = expectation.on_ranks;
    named.push_back(expectation.rank.value_or(0));
    const int64_t largest = *std::ranges::max_element(named);
    if (largest >= ranks) {
      rehearsal.problems.push_back(
          {Problem::Kind::invalid, expectation.place,
           fmt::format("there is no rank {}: the run has {}", largest, ranks),
           ranks == 1 ? "write `on rank 0`" : fmt::format("ranks are 0 to {}", ranks - 1)});
    }
    for (const ResultName& result : expectation.results) {
      const bool of_range = result.name.ends_with(".low") || result.name.ends_with(".high");
      if (of_range && !is_real(rehearsal.world) && !rehearsal.run.calibration) {
        rehearsal.problems.push_back(
            {Problem::Kind::unsupported, result.place,
             fmt::format("`{}` is not available: without a calibration a prediction has no range",
                         result.name),
             "measure this machine: lockstep calibrate -o this-machine.json, and name the file: "
             "cluster: {calibration: this-machine.json}"});
      }
      check_transfers(rehearsal, result);
    }
  }
}

RunRequest request_of_prediction(const RehearseRequest& request) {
  RunRequest how{World::simulated, false, {}, request.deadline.get()};
  how.arithmetic = Arithmetic::where_it_decides;
  return how;
}

// What the attempts of a job were is that of the run itself, as what was logged is.
void take_results(Results results, Rehearsal& rehearsal) {
  results.elastic = std::move(rehearsal.results.elastic);
  rehearsal.results = std::move(results);
}

// Of a training that placeholder values ended early: what is predicted is the whole of it, and what
// it logged and decided is that of the run itself. Gives what was run for it.
std::optional<Scenario> predict_planned_end(Rehearsal& rehearsal, const RehearseRequest& request) {
  const std::optional<MadeUpStop> stop = is_real(rehearsal.world) || rehearsal.hung ||
                                                 !rehearsal.undecided.empty() ||
                                                 rehearsal.results.elastic
                                             ? std::nullopt
                                             : made_up_stop(rehearsal.run);
  if (!stop) {
    return std::nullopt;
  }
  tell(request.progress.get(), "to the planned end");
  const Scenario whole = to_planned_end(rehearsal.run);
  const OneRun planned = run_once(whole, request_of_prediction(request));
  if (!planned.ran || !planned.undecided.empty() || planned.result.hung) {
    rehearsal.undecided = planned.undecided;
    return std::nullopt;
  }
  take_results(measure(planned), rehearsal);
  if (!request.explore) {
    rehearsal.problems.push_back(
        {Problem::Kind::note, stop->place,
         fmt::format("EarlyStopping would stop in epoch {} by `{}`, which is a placeholder value "
                     "here; time and memory are predicted to the planned end",
                     stop->epoch, stop->monitor),
         "set max_epochs to what you expect"});
  }
  return whole;
}

// A device cannot do more than its peak: the peak that is stated is too low.
void tell_implausible(Rehearsal& rehearsal) {
  const std::optional<double>& mfu = rehearsal.results.prediction.implausible_mfu;
  if (mfu) {
    const std::optional<ClusterSpec>& cluster = rehearsal.scenario->cluster;
    rehearsal.problems.push_back(
        {Problem::Kind::note,
         cluster ? cluster->place : SourcePlace{rehearsal.scenario->file, 0, 0},
         fmt::format("the MFU is not shown: {:.2f} is not plausible", *mfu),
         fmt::format("check the peak for {} in cluster.gpu.flops",
                     name_of(rehearsal.run.preparation.plan.activation_dtype))});
  }
}

// A run that computes values keeps every tensor and updates parameters one by one, for the
// arithmetic alone: its times and memory are not those that are predicted. Where values decide
// nothing, one without them is measured, as `run` does.
std::optional<OneRun> predict_without_values(Rehearsal& rehearsal, const RehearseRequest& request) {
  const Preparation& preparation = rehearsal.run.preparation;
  if (is_real(rehearsal.world) || !preparation.plan.numerics || preparation.values_decide ||
      rehearsal.hung || !rehearsal.undecided.empty()) {
    return std::nullopt;
  }
  std::optional<OneRun> priced =
      rehearsal.results.elastic
          ? price_job(request_of_prediction(request), rehearsal)
          : std::optional(run_once(*rehearsal.scenario, request_of_prediction(request)));
  if (priced && rehearsal.undecided.empty()) {
    rehearsal.undecided = priced->undecided;
  }
  if (!priced || !priced->ran || !priced->undecided.empty() || priced->result.hung) {
    return std::nullopt;
  }
  take_results(measure(*priced), rehearsal);
  return priced;
}

// What a run has given until it was stopped is no result, but tells what may come.
void add_partial_results(Rehearsal& rehearsal) {
  if (is_real(rehearsal.world) || rehearsal.run.undecided.empty()) {
    return;
  }
  rehearsal.results.partial = measure_so_far(rehearsal.run);
}

void tell_missing_range(const RehearseRequest& request, Rehearsal& rehearsal) {
  const Deadline* const deadline = request.deadline.get();
  if (!rehearsal.results.prediction.total_time_low && deadline != nullptr && deadline->passed()) {
    rehearsal.problems.push_back(
        {Problem::Kind::note,
         {rehearsal.scenario->file, 0, 0},
         fmt::format("the range of the prediction is not known: {}", deadline->reason()),
         "give more time: --time-limit"});
  }
}

void predict(Rehearsal& rehearsal, const RehearseRequest& request) {
  note_phase(request.deadline.get(), "times and memory were measured");
  // What a run has given until it was stopped is no result.
  std::optional<ElasticResults> elastic = std::move(rehearsal.results.elastic);
  rehearsal.results =
      rehearsal.run.undecided.empty() ? measure(rehearsal.run) : configuration_of(rehearsal.run);
  rehearsal.results.elastic = std::move(elastic);
  add_partial_results(rehearsal);
  const std::optional<OneRun> priced = predict_without_values(rehearsal, request);
  complete_job(priced ? *priced : rehearsal.run, rehearsal);
  const std::optional<Scenario> planned = predict_planned_end(rehearsal, request);
  measure_step_alone(request, rehearsal);
  if (!is_real(rehearsal.world)) {
    tell_implausible(rehearsal);
  }
  if (rehearsal.run.calibration && !rehearsal.hung && rehearsal.undecided.empty()) {
    tell(request.progress.get(), "the range");
    add_range(planned ? *planned : *rehearsal.scenario, request_of_prediction(request),
              rehearsal.results.prediction);
    tell_missing_range(request, rehearsal);
  } else if (!is_real(rehearsal.world) && !rehearsal.hung && rehearsal.undecided.empty()) {
    const OneRun& run = rehearsal.run;
    const auto kernels = kernel_machine(*rehearsal.scenario, run.machine.cluster.node.device);
    if (kernels && run.preparation.network) {
      add_fitted_range(rehearsal.results.prediction, *kernels, *run.preparation.network);
    }
  }
}

void complete_findings(Rehearsal& rehearsal) {
  fold_consequences(rehearsal.run, rehearsal.findings);
  place_findings(rehearsal.run, rehearsal.findings);
  complete_remedies(rehearsal.run, rehearsal.findings);
  complete_server_remedies(rehearsal.run, rehearsal.findings);
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
  Explored explored = explore_job(request, rehearsal);
  rehearsal.problems = explored.first.problems;
  rehearsal.sites = explored.sites;
  rehearsal.sites.merge(explored.first.preparation.sites);
  rehearsal.run = std::move(explored.first);
  // A limit may be reached before the first run begins.
  rehearsal.undecided = rehearsal.run.ran ? rehearsal.run.undecided : explored.undecided;
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
  add_notes_of_world(rehearsal);
  predict(rehearsal, request);
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
  note_phase(request.deadline.get(), "remedies of findings were looked for");
  complete_findings(rehearsal);
  if (request.explore && request.first_values) {
    add_first_values(own, request, rehearsal);
  }
  if (request.advise) {
    rehearsal.results.advice = advise(rehearsal, request);
  }
  complete_memory_remedies(rehearsal.run, rehearsal.results.advice, rehearsal.findings);
  if (request.find_smallest) {
    add_smallest(own, request, rehearsal);
  }
  if (rehearsal.undecided.empty()) {
    rehearsal.undecided = rehearsal.sizes_left_out;
  }
  return rehearsal;
}

}  // namespace lockstep::cli
