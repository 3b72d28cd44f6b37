#include "rehearsal/findings/elastic_findings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/scenario/expressions_of.hpp"
#include "model/user_program/sites.hpp"
#include "properties/invariants/learning_rate_scaled.hpp"
#include "rehearsal/run/configuration.hpp"
#include "rehearsal/run/servers.hpp"

namespace lockstep::cli {

namespace {

bool is_of_failure(const Finding& finding) {
  return finding.level == Level::error &&
         (finding.code.empty() || finding.code.starts_with("LS10") || finding.code == "LS401");
}

void place_at_key(const SourcePlace& place, const char* label, Finding& finding) {
  if (place.line > 0) {
    finding.place = site_of(place);
    finding.sites.push_back({finding.place, SiteRole::subject, label});
  }
}

const Object* model_checkpoint(const Scenario& scenario) {
  const std::vector<Object>& callbacks = scenario.trainer->callbacks;
  const auto found = std::ranges::find(callbacks, "ModelCheckpoint", &Object::name);
  return found == callbacks.end() ? nullptr : &*found;
}

bool is_given(const Object& object, std::string_view argument) {
  const PlainValue* const value = object.find(argument);
  const bool* const flag = value == nullptr ? nullptr : value->get_if<bool>();
  return value != nullptr && !value->is_null() && (flag == nullptr || *flag);
}

struct Remedy {
  std::string why;
  std::string fix;
};

constexpr const char* whole_remedy =
    "trainer: {callbacks: [{ModelCheckpoint: {dirpath: checkpoints, save_last: true}}]}, and "
    "program: {main: [{fit: {ckpt_path: last}}]}";

// Why an attempt behind the first found nothing to continue from; empty: nothing was saved in time.
Remedy why_anew(const OneRun& last) {
  const Scenario& scenario = *last.preparation.scenario;
  const RankLog& log = last.preparation.log->ranks.front();
  if (!log.resumption) {
    return {"fit is called without ckpt_path, so no attempt reads a checkpoint", whole_remedy};
  }
  const Object* const callback = model_checkpoint(scenario);
  if (callback == nullptr || !is_given(*callback, "save_last")) {
    return {
        "`ckpt_path: last` looks for a file `last.ckpt`, and no ModelCheckpoint has save_last: "
        "true",
        "write ModelCheckpoint: {dirpath: checkpoints, save_last: true}"};
  }
  const bool has_folder = is_given(*callback, "dirpath") || callback->find("") != nullptr;
  if (!has_folder && log.checkpoints.empty() == false && last.preparation.options.attempt > 0) {
    return {fmt::format("without `dirpath` each attempt looks into the folder of its own logger: "
                        "lightning_logs/version_{} is new",
                        last.preparation.options.attempt),
            "give ModelCheckpoint a dirpath"};
  }
  return {};
}

/// Attempts that did not continue what the one before had trained, and what that cost.
struct LostTraining {
  std::vector<size_t> attempts;
  int64_t steps = 0;

  void add(size_t attempt, int64_t lost) {
    if (lost > 0) {
      attempts.push_back(attempt);
      steps += lost;
    }
  }
};

Finding lost_training(const OneRun& last, const LostTraining& lost, std::string_view what) {
  const bool is_one = lost.attempts.size() == 1;
  Finding finding = finding_of(
      "LS502", Level::error,
      fmt::format("after {} {}: {} optimizer step{} lost",
                  is_one ? "a restart" : fmt::format("each of {} restarts", lost.attempts.size()),
                  what, lost.steps, lost.steps == 1 ? " is" : "s are"));
  place_at_key(last.preparation.scenario->launcher->place, "restarts all ranks", finding);
  finding.when =
      fmt::format("in attempt{} {} of torchrun", is_one ? "" : "s", fmt::join(lost.attempts, ", "));
  return finding;
}

// Of all restarts: a later one that lost nothing hides no earlier one.
void add_begun_anew(const OneRun& last, const ElasticResults& results,
                    std::vector<Finding>& findings) {
  LostTraining lost;
  for (size_t number = 1; number < results.attempts.size(); ++number) {
    if (results.attempts[number].resumed_from.empty()) {
      lost.add(number, results.attempts[number - 1].last_step);
    }
  }
  const Remedy remedy = why_anew(last);
  if (lost.attempts.empty() || remedy.why.empty()) {
    return;
  }
  Finding finding = lost_training(last, lost, "the training begins anew");
  finding.why.text = remedy.why;
  finding.follows.push_back("torchrun restores nothing: what the script does not load is gone");
  finding.fix = {remedy.fix};
  findings.push_back(std::move(finding));
}

// Workers read the file, and the next answer of a server overwrites what it gave them.
void add_new_servers(const OneRun& last, const ElasticResults& results,
                     std::vector<Finding>& findings) {
  LostTraining lost;
  for (size_t number = 1; number < results.attempts.size(); ++number) {
    if (results.attempts[number].servers_begin_anew) {
      lost.add(number, results.attempts[number - 1].last_step);
    }
  }
  if (lost.attempts.empty()) {
    return;
  }
  const RankSet servers = servers_of(last);
  const AttemptResult& resumed = results.attempts[lost.attempts.back()];
  Finding finding = lost_training(last, lost, "the weights begin anew");
  finding.why.text = fmt::format(
      "{} {} the weights and the optimizer's state, and no checkpoint is loaded there; "
      "{} resumes its workers at step {}, and their next pull replaces the weights that "
      "they have read",
      servers.phrase(), servers.size() == 1 ? "holds" : "hold",
      resumed.resumed_from.substr(resumed.resumed_from.rfind('/') + 1), resumed.first_step);
  finding.follows.push_back(
      "loops, schedules and global_step continue, the model has its initial weights");
  finding.fix = {
      "load the file on the servers too, before they answer their first pull, and save the "
      "optimizer's state there; or use strategy: ddp, which restores both"};
  findings.push_back(std::move(finding));
}

int64_t trained_in(const OneRun& run, int64_t epoch) {
  int64_t samples = 0;
  for (const RankLog& rank : run.preparation.log->ranks) {
    for (const SampleUse& use : rank.samples) {
      samples += use.stage == "train" && use.epoch == epoch ? use.samples.size() : 0;
    }
  }
  return samples;
}

// How many samples of the epoch a training without a failure leaves out as well: `max_steps` and
// `limit_train_batches` may end it before all are taken.
int64_t not_reached_in(const OneRun& last, const ResumedEpoch& epoch) {
  const RankLog& first = last.preparation.log->ranks.front();
  const LoaderSpec* const loader = loader_of(last, "train");
  int64_t reached = epoch.samples - epoch.missed + epoch.repeated;
  if (first.resumption && first.resumption->epoch == epoch.epoch && loader != nullptr &&
      loader->batch_size) {
    // Batches are counted on from the checkpoint, each of as many samples as the ranks now take.
    reached =
        first.resumption->batch * loader->batch_size->value * last.preparation.data_parallel_size +
        trained_in(last, epoch.epoch);
  }
  return std::clamp<int64_t>(epoch.samples - reached, 0, epoch.missed);
}

Finding resumed_within(const OneRun& last, const ResumedEpoch& epoch, int64_t not_reached) {
  const std::string of =
      not_reached == 0 ? fmt::format("{} samples", epoch.samples)
                       : fmt::format("the {} samples that it reaches", epoch.samples - not_reached);
  Finding finding = finding_of(
      "LS304", Level::warning,
      fmt::format("epoch {} was resumed within: of {} {} are trained on again and {} never",
                  epoch.epoch, of, epoch.repeated, epoch.missed - not_reached));
  const Object* const callback = model_checkpoint(*last.preparation.scenario);
  const SourcePlace place =
      callback == nullptr ? last.preparation.scenario->launcher->place : callback->place;
  place_at_key(place, "saves within an epoch", finding);
  finding.when = "in training";
  finding.why.text =
      "Lightning continues to count batches where it was, and the DataLoader begins its order anew";
  finding.fix = {
      "save at the end of epochs (every_n_epochs: 1), or use a DataLoader that has state_dict and "
      "load_state_dict, such as torchdata's StatefulDataLoader"};
  return finding;
}

Finding batch_has_changed(const OneRun& last, const AttemptResult& before,
                          const AttemptResult& after, const std::vector<Finding>& judged) {
  Finding finding = finding_of(
      "LS309", Level::warning,
      fmt::format("a step takes {} samples since the restart, {} before, and the learning rate is "
                  "{:.4g}",
                  *after.effective_batch_size, *before.effective_batch_size, after.learning_rate));
  const std::vector<Object>& optimizers = last.preparation.scenario->optimizers;
  place_at_key(
      optimizers.empty() ? last.preparation.scenario->launcher->place : optimizers.front().place,
      "this rate", finding);
  finding.when = "after a restart with fewer nodes";
  finding.why.text =
      fmt::format("{} ranks on {} node{} are left of {}", after.ranks, after.nodes.size(),
                  after.nodes.size() == 1 ? "" : "s", before.ranks);
  if (!after.resumed_from.empty()) {
    finding.why.text +=
        "; load_state_dict of the optimizer restores the rate of before, also where the script "
        "scales it";
  }
  finding.follows = judged.front().follows;
  finding.fix = {
      "keep the batch: batch_size or accumulate_grad_batches by the world size; or set the rate "
      "after the checkpoint is loaded"};
  return finding;
}

// The first attempt whose batch is another than that of the attempt before.
void add_changed_batch(const OneRun& last, const ElasticResults& results,
                       std::vector<Finding>& findings) {
  for (size_t number = 1; number < results.attempts.size(); ++number) {
    const AttemptResult& before = results.attempts[number - 1];
    const AttemptResult& after = results.attempts[number];
    if (!before.effective_batch_size || !after.effective_batch_size ||
        *before.effective_batch_size == *after.effective_batch_size) {
      continue;
    }
    LearningRateUse use;
    use.base_rate = before.learning_rate;
    use.base_batch_size = *before.effective_batch_size;
    use.rate = after.learning_rate;
    use.batch_size = *after.effective_batch_size;
    const std::vector<Finding> judged = learning_rate_scaled(use);
    if (!judged.empty()) {
      findings.push_back(batch_has_changed(last, before, after, judged));
      return;
    }
  }
}

}  // namespace

void drop_answered_failures(std::vector<Finding>& findings) {
  std::erase_if(findings, is_of_failure);
}

void tell_end_of_job(const ElasticResults& results, std::vector<Finding>& findings) {
  for (Finding& finding : findings) {
    if (!results.ended_by.empty() && is_of_failure(finding)) {
      finding.follows.push_back("the job ends: " + results.ended_by);
    }
  }
}

std::vector<Finding> elastic_findings(const OneRun& last, const ElasticResults& results) {
  std::vector<Finding> findings;
  if (results.restarts() == 0 || !last.ran) {
    return findings;
  }
  add_begun_anew(last, results, findings);
  add_new_servers(last, results, findings);
  for (const ResumedEpoch& epoch : results.resumed_epochs) {
    const int64_t not_reached = not_reached_in(last, epoch);
    if (epoch.repeated > 0 || epoch.missed > not_reached) {
      findings.push_back(resumed_within(last, epoch, not_reached));
    }
  }
  add_changed_batch(last, results, findings);
  return findings;
}

}  // namespace lockstep::cli
