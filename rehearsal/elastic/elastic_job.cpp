#include "rehearsal/elastic/elastic_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "rehearsal/elastic/attempt_times.hpp"
#include "rehearsal/elastic/folder_checkpoints.hpp"
#include "rehearsal/explore/merge_explored.hpp"
#include "rehearsal/findings/elastic_findings.hpp"
#include "rehearsal/launch/temporary_folder.hpp"
#include "rehearsal/run/configuration.hpp"

namespace lockstep::cli {

namespace {

std::shared_ptr<KeptCheckpoints> in_memory() { return std::make_shared<MemoryCheckpoints>(); }

/// Folders for the attempts of one job.
class JobFolder {
 public:
  std::shared_ptr<KeptCheckpoints> next() {
    const std::filesystem::path folder =
        std::filesystem::path(folder_.path()) / fmt::format("attempt-{}", attempts_++);
    std::error_code error;
    std::filesystem::create_directory(folder, error);
    if (error) {
      throw RealRunFailed(fmt::format("{}: {}", folder.string(), error.message()));
    }
    return std::make_shared<FolderCheckpoints>(folder.string());
  }

 private:
  TemporaryFolder folder_;
  int32_t attempts_ = 0;
};

bool has_folder(const Object& callback) {
  return callback.find("dirpath") != nullptr || callback.find("") != nullptr;
}

int64_t whole_or(const Object& callback, std::string_view argument, int64_t otherwise) {
  const PlainValue* const value = callback.find(argument);
  const int64_t* const number = value == nullptr ? nullptr : value->get_if<int64_t>();
  return number == nullptr ? otherwise : *number;
}

// As far as the run itself shows it; 0: a failure costs everything.
int64_t steps_between_checkpoints(const OneRun& run, const Prediction& prediction) {
  const RankLog& log = run.preparation.log->ranks.front();
  const bool saves_last = std::ranges::any_of(
      log.checkpoints, [](const CheckpointLog& saved) { return !saved.last.empty(); });
  int64_t least = 0;
  for (const Object& callback : run.preparation.scenario->trainer->callbacks) {
    if (callback.name != "ModelCheckpoint" || !has_folder(callback) || !log.resumption ||
        !saves_last) {
      continue;
    }
    const int64_t of_epoch = log.epochs > 0 ? prediction.steps / log.epochs : prediction.steps;
    const int64_t by_epochs =
        of_epoch * std::max<int64_t>(1, whole_or(callback, "every_n_epochs", 1));
    const int64_t steps = whole_or(callback, "every_n_train_steps", by_epochs);
    least = least == 0 ? steps : std::min(least, steps);
  }
  return least;
}

FailureForecast forecast(const OneRun& run, const Prediction& prediction, double mtbf_s) {
  const Preparation& preparation = run.preparation;
  const Launch& launch = preparation.placement.launch;
  const std::optional<ClusterSpec>& cluster = preparation.scenario->cluster;
  DowntimeFacts facts;
  facts.nodes_before = facts.nodes_after = launch.nodes;  // another takes the place of the lost one
  facts.lost_node = true;
  facts.errors_at_once = preparation.gloo;
  facts.group_timeout = preparation.timeout;
  facts.start_time = cluster ? value_or(cluster->start_time, Time{}) : Time{};
  const ElasticLauncher launcher{launch.least_nodes, launch.nodes, launch.max_restarts,
                                 launch.processes_per_node};
  const Time step = prediction.usual_step_time().value_or(Time{});
  const Time set_up = std::max(Time{}, prediction.first_step.value_or(Time{}) - step);
  FailureModel model;
  model.mtbf_s = mtbf_s / static_cast<double>(launch.nodes);
  model.checkpoint_s = seconds(checkpoint_pause(run));
  model.restart_s = seconds(downtime_of(launcher, facts).whole() + set_up);
  return forecast_of(
      model, launch.nodes,
      seconds(step) * static_cast<double>(steps_between_checkpoints(run, prediction)),
      preparation.options.seed);
}

Explored run_of_attempt(RunRequest how, const Scenario& scenario, const Attempt& attempt) {
  how.attempt = attempt;
  Explored explored;
  explored.first = run_once(scenario, how);
  explored.undecided = explored.first.undecided;
  return explored;
}

}  // namespace

Explored explore_job(const RehearseRequest& request, Rehearsal& rehearsal) {
  const ExploreRequest how = explore_request(*rehearsal.scenario, request);
  if (!is_elastic(*rehearsal.scenario)) {
    return explore(*rehearsal.scenario, how);
  }
  const RunAttempt run = [&](const Scenario& scenario, const Attempt& attempt) {
    ExploreRequest own = how;
    own.attempt = attempt;
    return explore(scenario, own);
  };
  // Ranks that others have started left one attempt alone.
  std::optional<JobFolder> folder;
  const MakeStore make_store = [&folder] { return folder ? folder->next() : in_memory(); };
  Attempts job;
  try {
    if (request.world == World::processes && request.real == nullptr) {
      folder.emplace();
    }
    job = run_attempts(*rehearsal.scenario, run, make_store);
  } catch (const RealRunFailed& error) {  // no folder, or a damaged checkpoint
    Explored failed;
    failed.first.world_failure = error.what();
    return failed;
  }
  std::vector<Finding> found = elastic_findings(job.last.first, job.results);
  std::move(found.begin(), found.end(), std::back_inserter(job.last.findings));
  sort_findings(job.last.findings);
  rehearsal.results.elastic = std::move(job.results);
  rehearsal.attempted = std::move(job.scenario);
  return std::move(job.last);
}

std::optional<OneRun> price_job(const RunRequest& how, Rehearsal& rehearsal) {
  const RunAttempt run = [&how](const Scenario& scenario, const Attempt& attempt) {
    return run_of_attempt(how, scenario, attempt);
  };
  Attempts job = run_attempts(*rehearsal.scenario, run, in_memory);
  OneRun& last = job.last.first;
  const bool is_alike = rehearsal.results.elastic &&
                        job.results.attempts.size() == rehearsal.results.elastic->attempts.size();
  if (!last.ran || !last.undecided.empty() || last.result.hung || !is_alike) {
    return std::nullopt;
  }
  rehearsal.results.elastic->attempts = std::move(job.results.attempts);
  return std::move(last);
}

std::vector<OneRun> runs_of_job(const RunRequest& how, const Scenario& scenario) {
  const RunAttempt run = [&how](const Scenario& of_attempt, const Attempt& attempt) {
    return run_of_attempt(how, of_attempt, attempt);
  };
  std::vector<OneRun> runs;
  Attempts job = run_attempts(scenario, run, in_memory, &runs);
  runs.push_back(std::move(job.last.first));
  const auto is_whole = [](const OneRun& each) { return each.ran && each.undecided.empty(); };
  if (!std::ranges::all_of(runs, is_whole)) {
    runs.clear();
  }
  return runs;
}

void complete_job(const OneRun& priced, Rehearsal& rehearsal) {
  Results& results = rehearsal.results;
  if (!results.elastic || !rehearsal.ran()) {
    return;
  }
  ElasticResults& elastic = *results.elastic;
  results.prediction.steps += elastic.attempts.back().first_step;
  int64_t simulated = 0;  // steps that a failure has lost were simulated, too
  for (const AttemptResult& attempt : elastic.attempts) {
    simulated += attempt.simulated;
  }
  results.prediction.simulated_steps = std::min(simulated, results.prediction.steps);
  const std::optional<ClusterSpec>& cluster = rehearsal.scenario->cluster;
  if (!is_real(rehearsal.world) && cluster && cluster->mtbf &&
      priced.preparation.placement.launch.max_restarts > 0 &&
      rehearsal.why_no_prediction().empty()) {
    elastic.forecast = forecast(priced, results.prediction, cluster->mtbf->value);
  }
  if (!is_real(rehearsal.world)) {
    results.prediction.total_time = elastic.wall();
  }
  // The last attempt does not begin with the first epoch.
  if (const auto counts = last_sample_counts(priced, "train")) {
    results.samples_repeated = counts->repeated;
    results.samples_missed = counts->missed;
  }
  if (!elastic.resumed_epochs.empty()) {
    results.samples_repeated = 0;
    results.samples_missed = 0;
    for (const ResumedEpoch& epoch : elastic.resumed_epochs) {
      *results.samples_repeated += epoch.repeated;
      *results.samples_missed += epoch.missed;
    }
  }
}

}  // namespace lockstep::cli
