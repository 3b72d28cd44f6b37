#include "rehearsal/elastic/attempts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/trainer/prepare/node_range.hpp"
#include "properties/diagnosis/shrink.hpp"
#include "properties/invariants/every_sample_once.hpp"
#include "rehearsal/elastic/attempt_scenario.hpp"
#include "rehearsal/elastic/attempt_times.hpp"
#include "rehearsal/elastic/struck_faults.hpp"
#include "rehearsal/findings/elastic_findings.hpp"
#include "rehearsal/measure/measure.hpp"
#include "rehearsal/run/configuration.hpp"
#include "rehearsal/run/servers.hpp"

namespace lockstep::cli {

namespace {

bool has_failed(const RankEnd& end) {
  return end.kind == RankEnd::Kind::lost || end.kind == RankEnd::Kind::raised;
}

/// The attempts of one job, and what they leave one another.
class ElasticJob {
 public:
  ElasticJob(const Scenario& scenario, const RunAttempt& run, const MakeStore& make_store,
             std::vector<OneRun>* earlier)
      : scenario_(scenario), run_(run), make_store_(make_store), earlier_(earlier) {}

  Attempts run() {
    for (;;) {
      begin();
      const bool goes_on = finish();
      merge(goes_on);
      if (!goes_on) {
        tell_faults_left();
        tell_samples();
        return std::move(all_);
      }
    }
  }

 private:
  const OneRun& here() const { return all_.last.first; }
  AttemptResult& result() { return all_.results.attempts.back(); }
  int32_t ranks() const { return here().preparation.options.world_size; }

  void begin() {
    AttemptScenario own = number_ == 0 ? first_attempt(scenario_)
                                       : later_attempt(scenario_, world_, past_faults_, began_);
    faults_ = std::move(own.faults);
    all_.scenario = std::make_shared<const Scenario>(std::move(own.scenario));
    store_ = make_store_();
    all_.attempt = {number_, number_ == 0 ? std::vector<int32_t>() : world_.nodes, past_faults_,
                    newest_, store_};
    if (earlier_ != nullptr && number_ > 0) {
      earlier_->push_back(std::move(all_.last.first));
    }
    all_.last = run_(*all_.scenario, all_.attempt);
  }

  // True: the launcher makes another attempt.
  bool finish() {
    const OneRun& run = here();
    AttemptResult& attempt = all_.results.attempts.emplace_back();
    attempt.began = began_;
    if (!run.ran) {
      return false;
    }
    if (number_ == 0) {
      read_launcher();
    }
    struck_ = struck_faults(run);
    servers_ = servers_of(run);
    leave_out_later_faults();
    attempt.ranks = ranks();
    attempt.nodes = world_.nodes;
    const Results configuration = configuration_of(run);
    attempt.effective_batch_size = configuration.effective_batch_size;
    const RankLog& log = run.preparation.log->ranks.front();
    if (log.resumption && !log.resumption->file.empty()) {
      attempt.resumed_from = log.resumption->file;
      attempt.first_step = log.resumption->global_step;
    }
    attempt.learning_rate = attempt.resumed_from.empty() || newest_->learning_rates.empty()
                                ? configuration.learning_rate.value_or(0)
                                : newest_->learning_rates.front();
    attempt.servers_begin_anew = !attempt.resumed_from.empty() && !servers_.empty();
    if (attempt.resumed_from.empty() || attempt.servers_begin_anew) {
      for (AttemptResult& earlier : all_.results.attempts) {  // nothing of them was used
        earlier.kept_step = 0;
        earlier.useful = Time{};
      }
    }
    if (attempt.resumed_from.empty()) {
      within_.clear();
    } else if (log.resumption->batch > 0) {
      within_.insert(log.resumption->epoch);
    }
    lineage_ = attempt.resumed_from.empty() ? std::vector<TrainedSamples>() : of_newest_;
    attempt.last_step = steps_taken(attempt.first_step);
    attempt.simulated = std::ssize(steps_of(*run.result.journal, 0));
    const AttemptFailure failure = failure_of();
    if (failure.failed.empty() && failure.lost.empty()) {
      attempt.ran = run.result.total_time;
      attempt.kept_step = attempt.last_step;
      attempt.useful = training_until(run, attempt, attempt.last_step);
      return false;
    }
    attempt.ran = time_of_failure(run);
    attempt.failure = failure_text();
    take_checkpoint();
    return goes_on_after(failure);
  }

  // By the first rank that failed: the others may have submitted more. A server counts no steps,
  // but its workers do. The log of a process that is gone has gone with it; its journal has not.
  int64_t steps_taken(int64_t before) const {
    const OneRun& run = here();
    int32_t rank = 0;
    while (rank < ranks() && (!failed(rank) || servers_.contains(rank))) {
      ++rank;
    }
    rank = rank < ranks() ? rank : 0;
    const int64_t counted = run.preparation.log->ranks[static_cast<size_t>(rank)].steps;
    return is_real(run.world) && counted == 0
               ? before + static_cast<int64_t>(steps_of(*run.result.journal, rank).size())
               : counted;
  }

  void read_launcher() {
    const Launch& launch = here().preparation.placement.launch;
    launcher_ = {launch.least_nodes, launch.most_nodes, launch.max_restarts,
                 launch.processes_per_node};
    const std::optional<ClusterSpec>& cluster = here().preparation.scenario->cluster;
    const int64_t there = cluster ? value_or(cluster->nodes, int64_t{launch.nodes}) : launch.nodes;
    // As many as the trainer takes start; what is beyond them waits for a place.
    rule_ = launcher_;
    rule_.most_nodes = launch.nodes;
    rule_.least_nodes = std::min<int64_t>(rule_.least_nodes, launch.nodes);
    world_ = first_world(rule_, there);
  }

  // A simulated world goes on behind its first failure, while the launcher ends the real one: what
  // strikes there at a later time strikes the attempt that runs then.
  void leave_out_later_faults() {
    const OneRun& run = here();
    late_.clear();
    const Time end = time_of_failure(run);
    std::erase_if(struck_, [&](const std::pair<int32_t, int32_t>& struck) {
      const std::optional<Time> at = time_of_fault(run, struck.first);
      const bool is_late = !is_real(run.world) && at && *at > end;
      if (is_late) {
        late_.insert(struck.second);
      }
      return is_late;
    });
  }

  bool failed(int32_t rank) const {
    return has_failed(here().result.ends[static_cast<size_t>(rank)]) && !late_.contains(rank);
  }

  int32_t node_of(int32_t rank) const {
    return world_.nodes.at(static_cast<size_t>(rank / launcher_.processes_per_node));
  }

  AttemptFailure failure_of() const {
    AttemptFailure failure;
    for (const auto& [number, rank] : struck_) {
      if (rank >= 0 && scenario_.faults.at(faults_.at(static_cast<size_t>(number))).kind ==
                           FaultKind::lost_node) {
        failure.lost.insert(node_of(rank));
      }
    }
    for (int32_t rank = 0; rank < ranks(); ++rank) {
      if (failed(rank) && !failure.lost.contains(node_of(rank))) {
        failure.failed.insert(node_of(rank));
      }
    }
    if (!failure.lost.empty()) {  // every rank that talks to them fails, or its watchdog ends it
      for (const int32_t node : world_.nodes) {
        if (!failure.lost.contains(node)) {
          failure.failed.insert(node);
        }
      }
    }
    return failure;
  }

  std::string failure_text() const {
    RankSet lost;
    RankSet raised;
    for (int32_t rank = 0; rank < ranks(); ++rank) {
      const RankEnd::Kind kind = here().result.ends[static_cast<size_t>(rank)].kind;
      if (failed(rank)) {
        (kind == RankEnd::Kind::lost ? lost : raised).add(rank);
      }
    }
    std::string text =
        lost.empty() ? "" : lost.phrase() + (lost.size() == 1 ? " was" : " were") + " lost";
    if (!raised.empty()) {
      text += (text.empty() ? "" : ", ") + raised.phrase() + " raised an exception";
    }
    return text;
  }

  void take_checkpoint() {
    AttemptResult& attempt = result();
    const bool whole = here().preparation.placement.traits.holds_whole_state || !servers_.empty();
    std::shared_ptr<const SavedTraining> kept = store_->newest(whole, ranks(), classes());
    if (!kept) {
      attempt.kept_step = attempt.first_step;
      return;
    }
    of_newest_ = lineage_;
    add_trained_until(kept->number);
    newest_ = std::move(kept);
    attempt.kept_step = newest_->position.global_step;
  }

  const RankClasses* classes() const { return here().preparation.options.classes.get(); }

  void add_trained_until(int64_t checkpoint) {
    for (int32_t rank = 0; rank < ranks(); ++rank) {
      const auto at = static_cast<size_t>(rank);
      const int32_t ran = classes() == nullptr ? rank : classes()->first(classes()->of(at));
      for (const TrainedSamples& trained : store_->trained_until(checkpoint, ran)) {
        of_newest_.push_back({trained.epoch, samples_of_rank(here(), at, trained.samples)});
      }
    }
  }

  bool goes_on_after(const AttemptFailure& failure) {
    AttemptResult& attempt = result();
    attempt.useful = training_until(here(), attempt, attempt.kept_step);
    NextAttempt next = after_failure(rule_, world_, failure);
    if (!next.world) {
      all_.results.ended_by = std::move(next.why_not);
      return false;
    }
    if (fails_for_ever()) {
      all_.results.ended_by = fmt::format(
          "every further attempt fails in the same way (max_restarts: {})", launcher_.max_restarts);
      return false;
    }
    attempt.down = downtime_of(launcher_, facts_for(failure, *next.world));
    for (const auto& [number, rank] : struck_) {
      past_faults_.insert(faults_.at(static_cast<size_t>(number)));
    }
    began_ = attempt.began + attempt.ran + attempt.down.whole();
    world_ = std::move(*next.world);
    ++number_;
    return true;
  }

  // Neither a fault nor a newer checkpoint will make the next attempt different.
  bool fails_for_ever() const {
    return struck_.empty() && all_.attempt.saved == newest_ && number_ > 0;
  }

  DowntimeFacts facts_for(const AttemptFailure& failure, const ElasticWorld& next) const {
    const Preparation& preparation = here().preparation;
    const std::optional<ClusterSpec>& cluster = preparation.scenario->cluster;
    DowntimeFacts facts;
    facts.nodes_before = std::ssize(world_.nodes);
    facts.nodes_after = std::ssize(next.nodes);
    facts.lost_node = !failure.lost.empty();
    facts.errors_at_once = preparation.gloo;
    facts.handles_sigterm = preparation.lightning >= Version{2, 0, 0};
    facts.group_timeout = preparation.timeout;
    facts.start_time = cluster ? value_or(cluster->start_time, Time{}) : Time{};
    return facts;
  }

  void merge(bool goes_on) {
    std::vector<Finding> own = std::move(all_.last.findings);
    if (goes_on) {
      drop_answered_failures(own);
    } else {
      tell_end_of_job(all_.results, own);
    }
    for (Finding& finding : own) {
      const bool known = std::ranges::any_of(
          findings_, [&](const Finding& other) { return same_defect(finding, other); });
      if (!known) {
        const std::string when = number_of_attempt(goes_on);
        finding.when += when.empty() ? "" : (finding.when.empty() ? "" : ", ") + when;
        findings_.push_back(std::move(finding));
      }
    }
    if (!goes_on) {
      all_.last.findings = std::move(findings_);
      sort_findings(all_.last.findings);
    }
  }

  std::string number_of_attempt(bool goes_on) const {
    const int32_t number = goes_on ? number_ - 1 : number_;
    return goes_on || number > 0 ? fmt::format("in attempt {} of torchrun", number) : "";
  }

  // Those of which no attempt knew: others say themselves that they did not strike.
  void tell_faults_left() {
    for (size_t number = 0; number < scenario_.faults.size(); ++number) {
      const FaultSpec& fault = scenario_.faults[number];
      if (!past_faults_.contains(number) && std::ranges::find(faults_, number) == faults_.end()) {
        all_.last.first.problems.push_back(
            {Problem::Kind::note, fault.place,
             fmt::format("`{}` did not strike: no rank ran at that time, or its node took no part",
                         name_of(fault.kind)),
             ""});
      }
    }
  }

  // Of every epoch that an attempt has resumed within, where it came to its end.
  void tell_samples() {
    const OneRun& run = here();
    if (!run.ran) {
      return;
    }
    const std::optional<int64_t> samples = samples_of_stage(run, "train");
    const RankLog& log = run.preparation.log->ranks.front();
    for (const int64_t epoch : within_) {
      if (samples && log.epochs > epoch) {
        const SampleCounts counts = count_samples(taken_in(epoch), 0, *samples);
        all_.results.resumed_epochs.push_back({epoch, *samples, counts.repeated, counts.missed});
      }
    }
  }

  std::vector<RankSamples> taken_in(int64_t epoch) const {
    std::vector<RankSamples> taken;
    for (const TrainedSamples& trained : lineage_) {
      if (trained.epoch == epoch) {
        taken.push_back({0, 0, trained.samples.list()});
      }
    }
    const ByRank<RankLog>& logs = here().preparation.log->ranks;
    for (size_t rank = 0; rank < logs.size(); ++rank) {
      for (const SampleUse& use : logs[rank].samples) {
        if (use.stage == "train" && use.epoch == epoch) {
          taken.push_back({0, 0, samples_of_rank(here(), rank, use.samples).list()});
        }
      }
    }
    return taken;
  }

  const Scenario& scenario_;
  const RunAttempt& run_;
  const MakeStore& make_store_;
  std::vector<OneRun>* earlier_;
  Attempts all_;
  ElasticLauncher launcher_;
  ElasticLauncher rule_;  ///< with as many nodes as the trainer takes
  ElasticWorld world_;
  int32_t number_ = 0;
  Time began_{};
  std::vector<size_t> faults_;    ///< of this attempt: their places in the scenario
  std::set<size_t> past_faults_;  ///< that have struck
  std::set<int32_t> late_;        ///< ranks that a fault takes away behind the first failure
  Struck struck_;                 ///< in this attempt
  RankSet servers_;               ///< of the world that runs now
  std::set<int64_t> within_;      ///< epochs that attempts have resumed within
  std::shared_ptr<KeptCheckpoints> store_;
  std::shared_ptr<const SavedTraining> newest_;
  std::vector<TrainedSamples> of_newest_;  ///< what the weights of the newest have seen
  std::vector<TrainedSamples> lineage_;    ///< the same of what this attempt began with
  std::vector<Finding> findings_;
};

}  // namespace

bool is_elastic(const Scenario& scenario) {
  if (scenario.is_bare_program() || !scenario.launcher || scenario.launcher->name != "torchrun") {
    return false;
  }
  const PlainValue* const given = scenario.launcher->find("max_restarts");
  const int64_t* const restarts = given == nullptr ? nullptr : given->get_if<int64_t>();
  const NodeRange range = node_range_of(*scenario.launcher);
  return (restarts != nullptr && *restarts > 0) || range.least != range.most;
}

Attempts run_attempts(const Scenario& scenario, const RunAttempt& run, const MakeStore& make_store,
                      std::vector<OneRun>* earlier) {
  return ElasticJob(scenario, run, make_store, earlier).run();
}

}  // namespace lockstep::cli
