#include "rehearsal/measure/advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "rehearsal/measure/measure.hpp"
#include "rehearsal/run/configuration.hpp"

namespace lockstep::cli {

namespace {

/// Of all variants together.
constexpr int64_t operations_max = 2'000'000;
constexpr int64_t batch_size_max = 65'536;
/// Indices of samples over all ranks: each rank's sampler lists the whole data set.
constexpr int64_t listed_samples_max = 20'000'000;
constexpr int64_t steps_of_variant = 3;
/// What changes less than this is no help.
constexpr double least_gain = 0.01;

PlainValue plain(int64_t number) { return {number, {}}; }

Bytes peak_of(const Results& results) {
  Bytes peak;
  for (const RankResults& rank : results.ranks) {
    peak = std::max(peak, rank.memory.peak);
  }
  return peak;
}

bool has_limit(const Results& results) {
  return !results.ranks.empty() && results.ranks.front().memory.capacity != Bytes::max();
}

bool ended_well(const OneRun& run) {
  return run.ran && !run.result.hung && run.undecided.empty() &&
         std::all_of(run.result.ends.begin(), run.result.ends.end(),
                     [](const RankEnd& end) { return end.kind == RankEnd::Kind::finished; });
}

/// What a short run of a variant gave.
struct Probe {
  std::optional<Results> results;  ///< none: it did not come to its end
  bool out_of_memory = false;      ///< that is why
  std::string failure;             ///< else why: "raises: .."; "" where the time was up
};

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

class Adviser {
 public:
  Adviser(const Rehearsal& rehearsal, const RehearseRequest& request)
      : rehearsal_(rehearsal), request_(request), loader_(loader_of(rehearsal.run, "train")) {}

  Advice run() {
    advice_.steps = steps_of_variant;
    find_largest_batch();
    try_base();
    std::stable_sort(advice_.changes.begin(), advice_.changes.end(),
                     [](const Change& left, const Change& right) {
                       return left.samples_per_s > right.samples_per_s;
                     });
    return std::move(advice_);
  }

 private:
  using Change = Advice::Change;

  // A few steps of training and nothing else. Only what is shortened alike is compared.
  Scenario shortened() const {
    Scenario variant = *rehearsal_.run.preparation.scenario;
    TrainerSpec& trainer = *variant.trainer;
    trainer.max_steps = Placed<int64_t>{steps_of_variant, {}};
    trainer.max_epochs = Placed<int64_t>{steps_of_variant + 1, {}};
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

  int64_t accumulated() const {
    const TrainerSpec& trainer = *rehearsal_.run.preparation.scenario->trainer;
    return std::max<int64_t>(1, value_or(trainer.accumulate_grad_batches, int64_t{1}));
  }

  // With as many samples as its steps take.
  Scenario with_batch_size(int64_t batch_size) const {
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

  // What all changes are made to, and compared with.
  Scenario base() const {
    return may_change_batch() && may_list(loader_->batch_size->value)
               ? with_batch_size(loader_->batch_size->value)
               : shortened();
  }

  int64_t samples_for(int64_t batch_size) const {
    const int64_t ranks = rehearsal_.run.preparation.options.world_size;
    return batch_size * ranks * accumulated() * (steps_of_variant + 1);
  }

  bool may_list(int64_t batch_size) const {
    return samples_for(batch_size) <=
           listed_samples_max / rehearsal_.run.preparation.options.world_size;
  }

  bool affordable() const {
    return spent_ + rehearsal_.run.result.operations <= operations_max && !stopped_;
  }

  Probe probe(const Scenario& variant) {
    tell(request_.progress.get(), "looking for what would help");
    const OneRun run = run_once(variant, {World::simulated, false, {}, request_.deadline.get()});
    spent_ += run.result.operations;
    stopped_ = stopped_ || !run.undecided.empty();
    return probe_of(run);
  }

  // Values that are listed sample by sample are of so many samples and no more.
  bool may_change_batch() const {
    if (loader_ == nullptr || loader_->batches || !loader_->batch_size ||
        loader_->batch_size->value > batch_size_max || accumulated() > batch_size_max) {
      return false;
    }
    return !loader_->values ||
           (!loader_->values->csv &&
            std::all_of(loader_->values->columns.begin(), loader_->values->columns.end(),
                        [](const Column& column) {
                          return column.expression.root().kind != ExpressionNode::Kind::list;
                        }));
  }

  // With the CUDA context and NCCL beside it.
  bool fits(int64_t batch_size) {
    const Probe short_run = probe(with_batch_size(batch_size));
    if (!short_run.failure.empty()) {
      advice_.why_no_batch_size =
          fmt::format("with batch_size {} {}", batch_size, short_run.failure);
      stopped_search_ = true;
      return false;
    }
    return short_run.results &&
           std::all_of(short_run.results->ranks.begin(), short_run.results->ranks.end(),
                       [](const RankResults& rank) {
                         return rank.memory.peak + rank.reserve <= rank.memory.capacity;
                       });
  }

  bool searches() const { return affordable() && !stopped_search_; }

  void find_largest_batch() {
    if (!may_change_batch() || !has_limit(rehearsal_.results)) {
      return;
    }
    int64_t good = 0;
    int64_t bad = loader_->batch_size->value;
    while (bad <= batch_size_max && searches() && may_list(bad) && fits(bad)) {
      good = bad;
      bad *= 2;
    }
    if (bad > batch_size_max || !may_list(bad)) {
      return;
    }
    while (searches() && bad - good > 1) {
      const int64_t middle = good + (bad - good) / 2;
      (fits(middle) ? good : bad) = middle;
    }
    if (searches()) {
      advice_.largest_batch_size = good;
    }
  }

  static bool is_comparable(const Probe& probe) {
    return probe.results && probe.results->prediction.samples_per_s &&
           probe.results->prediction.steady;
  }

  static Change change_of(const std::string& text, const Results& results) {
    return {text, *results.prediction.step_time, *results.prediction.samples_per_s,
            peak_of(results)};
  }

  void try_base() {
    if (!affordable()) {
      return;
    }
    const Probe short_run = probe(base());
    advice_.why_no_base = short_run.failure;
    if (is_comparable(short_run)) {
      base_ = *short_run.results;
      const bool alike = base_.effective_batch_size == rehearsal_.results.effective_batch_size ||
                         rehearsal_.results.prediction.steps == 0;
      advice_.base = change_of(alike ? "as it is" : "as it is, in full steps", base_);
      try_changes();
    }
  }

  // Keeps what helps.
  void try_change(const std::string& text, const Scenario& variant) {
    if (!affordable()) {
      return;
    }
    const Probe short_run = probe(variant);
    if (!is_comparable(short_run)) {
      return;
    }
    const Results& results = *short_run.results;
    const double gain = *results.prediction.samples_per_s / *base_.prediction.samples_per_s - 1;
    const double peak = static_cast<double>(peak_of(base_).count());
    const double saved = peak > 0 ? 1 - static_cast<double>(peak_of(results).count()) / peak : 0;
    ++advice_.tried;
    if (gain >= least_gain || (saved >= least_gain && gain > -least_gain)) {
      advice_.changes.push_back(change_of(text, results));
    }
  }

  void try_argument(const std::string& name, const PlainValue& value) {
    const StrategyEntry* entry = strategies().find(rehearsal_.run.preparation.strategy);
    if (entry == nullptr || std::find(entry->arguments.begin(), entry->arguments.end(), name) ==
                                entry->arguments.end()) {
      return;
    }
    Scenario variant = base();
    std::optional<Object>& strategy = variant.trainer->strategy;
    if (!strategy || strategy->name == "auto") {
      strategy = Object{rehearsal_.run.preparation.strategy, {}, {}};
    }
    const PlainValue* own = strategy->find(name);
    if (own != nullptr && text_of(*own) == text_of(value)) {
      return;
    }
    std::erase_if(strategy->arguments,
                  [&](const ObjectArgument& argument) { return argument.name == name; });
    strategy->arguments.push_back({name, value, {}});
    try_change(fmt::format("{}: {}", name, text_of(value)), variant);
  }

  bool waits_for_data() const {
    const double step_s = seconds(*base_.prediction.step_time);
    return step_s > 0 && seconds(base_.prediction.breakdown.data) / step_s >= least_gain;
  }

  int64_t cores_of_rank() const {
    const int64_t ranks = std::max(1, rehearsal_.run.preparation.options.ranks_per_node);
    return std::max<int64_t>(1, rehearsal_.run.machine.cluster.node.cpu_cores / ranks);
  }

  // The fewest that do as well as any: 1, 2, 4 .. up to the cores of a rank.
  void try_workers() {
    if (loader_ == nullptr || !waits_for_data()) {
      return;
    }
    const int64_t own = loader_->num_workers ? loader_->num_workers->value : 0;
    const int64_t most = cores_of_rank();
    std::optional<Change> best;
    for (int64_t next = 1; affordable(); next *= 2) {
      const int64_t workers = std::min(next, most);
      if (workers > own) {
        Scenario variant = base();
        variant.data->train.front().num_workers = Placed<int64_t>{workers, {}};
        const Probe short_run = probe(variant);
        ++advice_.tried;
        if (is_comparable(short_run) && (!best || *short_run.results->prediction.samples_per_s >
                                                      best->samples_per_s * (1 + least_gain))) {
          best = change_of(fmt::format("num_workers: {}", workers), *short_run.results);
        }
      }
      if (workers == most) {
        break;
      }
    }
    if (best && best->samples_per_s >= *base_.prediction.samples_per_s * (1 + least_gain)) {
      advice_.changes.push_back(*best);
    }
  }

  void try_batches() {
    if (!may_change_batch()) {
      return;
    }
    const int64_t doubled = loader_->batch_size->value * 2;
    if (!may_list(doubled)) {
      return;
    }
    if (!advice_.largest_batch_size || doubled <= *advice_.largest_batch_size) {
      try_change(fmt::format("batch_size: {}", doubled), with_batch_size(doubled));
    }
    Scenario variant = with_batch_size(loader_->batch_size->value);
    variant.trainer->accumulate_grad_batches = Placed<int64_t>{accumulated() * 2, {}};
    LoaderSpec& loader = variant.data->train.front();
    loader.samples->value *= 2;
    try_change(fmt::format("accumulate_grad_batches: {}", accumulated() * 2), variant);
  }

  void try_changes() {
    try_workers();
    try_argument("gradient_as_bucket_view", {true, {}});
    for (const int64_t cap_mb : {10, 100}) {
      try_argument("bucket_cap_mb", plain(cap_mb));
    }
    if (rehearsal_.run.preparation.plan.activation_dtype == DType::fp32) {
      Scenario variant = base();
      variant.trainer->precision = Placed<std::string>{"bf16-mixed", {}};
      try_change("precision: bf16-mixed", variant);
    }
    try_batches();
  }

  const Rehearsal& rehearsal_;
  const RehearseRequest& request_;
  const LoaderSpec* loader_;
  Results base_;  ///< of the scenario as it is, as short as its variants
  Advice advice_;
  int64_t spent_ = 0;
  bool stopped_ = false;
  bool stopped_search_ = false;  ///< a batch size could not be tried
};

}  // namespace

Advice advise(const Rehearsal& rehearsal, const RehearseRequest& request) {
  const Scenario& scenario = *rehearsal.scenario;
  const bool trains = rehearsal.run.preparation.scenario->trainer.has_value() &&
                      !scenario.is_bare_program() && scenario.faults.empty();
  const bool out_of_memory = ran_out_of_memory(rehearsal.run);
  const bool predicts = rehearsal.ran() && rehearsal.undecided.empty() &&
                        request.world == World::simulated &&
                        (rehearsal.why_no_prediction().empty() || out_of_memory);
  // Where one run takes seconds, a score of them takes minutes.
  const bool short_enough = rehearsal.run.result.operations <= operations_max / 8;
  if (!trains || !predicts || !short_enough ||
      (rehearsal.results.prediction.steps == 0 && !out_of_memory)) {
    return {};
  }
  return Adviser(rehearsal, request).run();
}

}  // namespace lockstep::cli
