#include "rehearsal/measure/prober.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <utility>

#include "rehearsal/measure/measure.hpp"
#include "rehearsal/run/configuration.hpp"
#include "rehearsal/run/run_ahead.hpp"
#include "rehearsal/text/number_text.hpp"

namespace lockstep::cli {

namespace {

/// Indices of samples over all ranks that are simulated.
constexpr int64_t listed_samples_max = 20'000'000;

bool ended_well(const OneRun& run) {
  return run.ran && !run.result.hung && run.undecided.empty() &&
         std::all_of(run.result.ends.begin(), run.result.ends.end(),
                     [](const RankEnd& end) { return end.kind == RankEnd::Kind::finished; });
}

std::string failure_of(const OneRun& run) {
  for (const Problem& problem : run.problems) {
    if (problem.stops()) {
      return "does not start: " + problem.message;
    }
  }
  for (const RankEnd& end : run.result.ends) {
    if (end.kind == RankEnd::Kind::raised) {
      return "raises: " + end.message;
    }
  }
  return run.result.hung ? "hangs" : "does not end";
}

Probe probe_of(const OneRun& run) {
  Probe probe;
  if (ran_out_of_memory(run)) {
    probe.out_of_memory = true;
  } else if (ended_well(run)) {
    probe.results = measure(run);
  } else if (run.undecided.empty()) {
    probe.failure = failure_of(run);
  }
  return probe;
}

// A few steps are no training: nothing that decides by metrics has its metrics there.
void drop_what_monitors(Scenario& variant) {
  constexpr auto monitors = std::to_array<std::string_view>({"EarlyStopping", "ModelCheckpoint"});
  std::erase_if(variant.trainer->callbacks, [&](const Object& callback) {
    return std::find(monitors.begin(), monitors.end(), callback.name) != monitors.end();
  });
  std::erase_if(variant.schedulers, [](const Object& scheduler) {
    return scheduler.name == "ReduceLROnPlateau" || scheduler.find("monitor") != nullptr;
  });
}

}  // namespace

Bytes peak_of(const Results& results) {
  Bytes peak;
  for (const RankResults& rank : results.ranks) {
    peak = std::max(peak, rank.memory.peak);
  }
  return peak;
}

bool fits(const Probe& probe) {
  return probe.results && std::ranges::all_of(probe.results->ranks, [](const RankResults& rank) {
           return rank.memory.peak + rank.reserve <= rank.memory.capacity;
         });
}

Prober::Prober(const Rehearsal& rehearsal, const RehearseRequest& request)
    : rehearsal_(rehearsal),
      request_(request),
      loader_(loader_of(rehearsal.run, "train")),
      longest_(cost_of(rehearsal.run)) {}

int64_t Prober::cost_of(const OneRun& run) {
  return run.result.simulated_operations + run.preparation.options.world_size;
}

Scenario Prober::shortened() const {
  Scenario variant = *rehearsal_.run.preparation.scenario;
  TrainerSpec& trainer = *variant.trainer;
  trainer.max_steps = Placed<int64_t>{steps_, {}};
  trainer.max_epochs = Placed<int64_t>{steps_ + 1, {}};
  trainer.min_steps.reset();
  trainer.min_epochs.reset();
  trainer.fast_dev_run.reset();
  trainer.overfit_batches.reset();
  trainer.limit_train_batches.reset();
  trainer.limit_val_batches = plain(0);
  trainer.num_sanity_val_steps = Placed<int64_t>{0, {}};
  VerifySpec verify = variant.verify.value_or(VerifySpec{});
  verify.numerics = Placed<std::string>{"false", {}};
  variant.verify = verify;
  drop_what_monitors(variant);
  return variant;
}

int64_t Prober::accumulated() const {
  const TrainerSpec& trainer = *rehearsal_.run.preparation.scenario->trainer;
  return std::max<int64_t>(1, value_or(trainer.accumulate_grad_batches, int64_t{1}));
}

Scenario Prober::with_batch_size(int64_t batch_size) const {
  Scenario variant = shortened();
  LoaderSpec& loader = variant.data->train.front();
  loader.batch_size = Placed<int64_t>{batch_size, {}};
  loader.tokens = std::nullopt;
  // Time and memory do not depend on what samples hold, and those of the scenario are too few.
  for (LoaderSpec* given : {&loader, &variant.data->common}) {
    given->inputs = std::nullopt;
    given->targets = std::nullopt;
  }
  loader.samples = Placed<int64_t>{samples_for(batch_size), {}};
  return variant;
}

Scenario Prober::base() const {
  return may_try_own_batch() ? with_batch_size(loader_->batch_size->value) : shortened();
}

int64_t Prober::samples_for(int64_t batch_size) const {
  const int64_t ranks = rehearsal_.run.preparation.data_parallel_size;
  return batch_size * ranks * accumulated() * (steps_ + 1);
}

bool Prober::may_list(int64_t batch_size) const {
  const int64_t simulated = rehearsal_.results.prediction.simulated_ranks;
  const int64_t ranks = simulated > 0 ? simulated : rehearsal_.run.preparation.options.world_size;
  return samples_for(batch_size) <= listed_samples_max / ranks;
}

int64_t Prober::largest_listed() const {
  int64_t batch_size = batch_size_max;
  while (batch_size > 0 && !may_list(batch_size)) {
    batch_size /= 2;
  }
  return batch_size;
}

void Prober::take_steps(int64_t steps) {
  steps_ = steps;
  of_batch_sizes_.clear();
  foreseen_sizes_.clear();
  of_base_.reset();
}

bool Prober::affordable(int64_t most) const { return spent_ + longest_ <= most && !stopped_; }

std::string Prober::why_not_affordable() const {
  return fmt::format("has {} operations and ranks, and all of them together at most {}",
                     number_text(static_cast<double>(longest_)),
                     number_text(static_cast<double>(operations_max)));
}

Prober::Tried Prober::try_one(const Scenario& variant, Asked asked) const {
  RunRequest short_run{World::simulated, false, {}, request_.deadline.get()};
  short_run.memory_alone = asked == Asked::memory;
  short_run.folds_links = rehearsal_.run.folds_links;
  const OneRun run = run_once(variant, short_run);
  return {probe_of(run), cost_of(run), !run.undecided.empty()};
}

Probe Prober::count(Tried tried) {
  longest_ = std::max(longest_, tried.cost);
  spent_ += tried.cost;
  stopped_ = stopped_ || tried.stopped;
  return std::move(tried.probe);
}

Probe Prober::probe(const Scenario& variant, Asked asked) {
  tell(request_.progress.get(), "looking for what would help");
  return count(try_one(variant, asked));
}

// Times are compared of its own size and of the double.
Prober::Asked Prober::asked_of(int64_t batch_size) const {
  const int64_t own = loader_->batch_size->value;
  return batch_size == own || batch_size == 2 * own ? Asked::times : Asked::memory;
}

bool Prober::may_run_ahead() const {
  const auto at_work = std::ranges::count_if(foreseen_sizes_, [](const auto& foreseen) {
    return foreseen.second.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
  });
  return at_work + 1 < request_.threads && affordable();
}

void Prober::probe_each(const std::vector<Variant>& variants,
                        const std::function<void(const Variant&, const Probe&)>& take) {
  std::future<Tried> next;
  for (size_t index = 0; index < variants.size() && affordable(); ++index) {
    std::future<Tried> own = std::exchange(next, {});
    if (index + 1 < variants.size() && may_run_ahead()) {
      next =
          run_ahead([this, scenario = variants[index + 1].scenario] { return try_one(scenario); });
    }
    take(variants[index], own.valid() ? count(own.get()) : probe(variants[index].scenario));
  }
}

void Prober::foresee_batch_size(int64_t batch_size) {
  if (may_run_ahead() && !of_batch_sizes_.contains(batch_size) && may_list(batch_size) &&
      !foreseen_sizes_.contains(batch_size)) {
    foreseen_sizes_.emplace(
        batch_size, run_ahead([this, scenario = with_batch_size(batch_size),
                               asked = asked_of(batch_size)] { return try_one(scenario, asked); }));
  }
}

const Probe& Prober::probe_batch_size(int64_t batch_size) {
  const auto known = of_batch_sizes_.find(batch_size);
  if (known != of_batch_sizes_.end()) {
    return known->second;
  }
  const auto foreseen = foreseen_sizes_.find(batch_size);
  Probe probe = foreseen == foreseen_sizes_.end()
                    ? this->probe(with_batch_size(batch_size), asked_of(batch_size))
                    : count(foreseen->second.get());
  foreseen_sizes_.erase(batch_size);
  return of_batch_sizes_.emplace(batch_size, std::move(probe)).first->second;
}

const Probe& Prober::probe_base() {
  if (may_try_own_batch()) {
    return probe_batch_size(loader_->batch_size->value);
  }
  if (!of_base_) {
    of_base_ = probe(base());
  }
  return *of_base_;
}

// Values that are listed sample by sample are of so many samples and no more.
bool Prober::may_change_batch() const {
  if (rehearsal_.run.preparation.fixes_batch_size || loader_ == nullptr || loader_->batches ||
      !loader_->batch_size || loader_->batch_size->value > batch_size_max ||
      accumulated() > batch_size_max) {
    return false;
  }
  return !loader_->values ||
         (!loader_->values->csv &&
          std::all_of(loader_->values->columns.begin(), loader_->values->columns.end(),
                      [](const Column& column) {
                        return column.expression.root().kind != ExpressionNode::Kind::list;
                      }));
}

}  // namespace lockstep::cli
