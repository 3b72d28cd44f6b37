#include "rehearsal/measure/advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rehearsal/measure/largest_batch.hpp"
#include "rehearsal/measure/prober.hpp"
#include "rehearsal/measure/strategy_advice.hpp"
#include "rehearsal/text/number_text.hpp"

namespace lockstep::cli {

namespace {

/// What changes less than this is no help.
constexpr double least_gain = 0.01;
/// Steps that take longer or less than those of the training by more than this are others.
constexpr double least_difference = 0.02;

class Adviser {
 public:
  Adviser(const Rehearsal& rehearsal, const RehearseRequest& request)
      : rehearsal_(rehearsal), prober_(rehearsal, request), loader_(prober_.loader()) {}

  Advice run() {
    advice_.steps = prober_.steps();
    find_largest_batch(prober_, advice_);
    if (advice_.largest_batch_size == 0) {
      try_strategies(prober_, advice_);
      return std::move(advice_);
    }
    try_base();
    std::stable_sort(advice_.changes.begin(), advice_.changes.end(),
                     [](const Change& left, const Change& right) {
                       return left.samples_per_s > right.samples_per_s;
                     });
    return std::move(advice_);
  }

  bool is_stopped() const { return prober_.stopped(); }

 private:
  using Change = Advice::Change;

  static bool is_comparable(const Probe& probe) {
    return probe.results && probe.results->prediction.samples_per_s &&
           probe.results->prediction.steady;
  }

  static Change change_of(const std::string& text, const Results& results) {
    return {text, *results.prediction.step_time, *results.prediction.samples_per_s,
            peak_of(results)};
  }

  void try_base() {
    if (!prober_.affordable()) {
      advice_.why_no_base = prober_.stopped() ? "" : prober_.why_not_affordable();
      return;
    }
    const Probe* short_run = &prober_.probe_base();
    const int64_t most = rehearsal_.results.prediction.steps;
    for (int64_t steps = 4 * prober_.steps(); steps <= most && differs(*short_run); steps *= 4) {
      if (!prober_.affordable()) {
        advice_.why_no_base =
            "in its first steps this training does something else than in most of them";
        return;
      }
      prober_.take_steps(steps);
      advice_.steps = steps;
      short_run = &prober_.probe_base();
    }
    advice_.why_no_base = short_run->failure;
    if (is_comparable(*short_run)) {
      base_ = *short_run->results;
      const bool is_same = has_same_batch(base_) || rehearsal_.results.prediction.steps == 0;
      advice_.base = change_of(is_same ? "as it is" : "as it is, in full steps", base_);
      try_changes();
    }
  }

  bool has_same_batch(const Results& results) const {
    return results.effective_batch_size == rehearsal_.results.effective_batch_size;
  }

  // A strategy may do something else for its first steps: PowerSGD and what averages models begin
  // late.
  bool differs(const Probe& short_run) const {
    const Prediction& told = rehearsal_.results.prediction;
    return is_comparable(short_run) && told.samples_per_s && told.steady &&
           has_same_batch(*short_run.results) &&
           std::abs(*short_run.results->prediction.samples_per_s / *told.samples_per_s - 1) >
               least_difference;
  }

  // Keeps what helps.
  void note_change(const std::string& text, const Probe& short_run) {
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

  void add_argument(const std::string& name, const PlainValue& value,
                    std::vector<Variant>& variants) const {
    const StrategyEntry* entry = strategies().find(rehearsal_.run.preparation.registered_strategy);
    if (entry == nullptr || !entry->reads(name)) {
      return;
    }
    Scenario variant = prober_.base();
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
    variants.push_back({fmt::format("{}: {}", name, text_of(value)), std::move(variant)});
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
    std::vector<Variant> variants;
    for (int64_t next = 1, workers = 0; workers < most; next *= 2) {
      workers = std::min(next, most);
      if (workers > own) {
        variants.push_back({fmt::format("num_workers: {}", workers), prober_.base()});
        variants.back().scenario.data->train.front().num_workers = Placed<int64_t>{workers, {}};
      }
    }
    std::optional<Change> best;
    prober_.probe_each(variants, [&](const Variant& variant, const Probe& short_run) {
      ++advice_.tried;
      if (is_comparable(short_run) && (!best || *short_run.results->prediction.samples_per_s >
                                                    best->samples_per_s * (1 + least_gain))) {
        best = change_of(variant.text, *short_run.results);
      }
    });
    if (best && best->samples_per_s >= *base_.prediction.samples_per_s * (1 + least_gain)) {
      advice_.changes.push_back(*best);
    }
  }

  bool may_double_batch() const {
    return prober_.may_change_batch() && prober_.may_list(loader_->batch_size->value * 2);
  }

  void try_doubled_batch() {
    const int64_t doubled = loader_->batch_size->value * 2;
    if ((!advice_.largest_batch_size || doubled <= *advice_.largest_batch_size) &&
        prober_.affordable()) {
      note_change(fmt::format("batch_size: {}", doubled), prober_.probe_batch_size(doubled));
    }
  }

  Variant with_doubled_accumulation() const {
    Scenario variant = prober_.with_batch_size(loader_->batch_size->value);
    variant.trainer->accumulate_grad_batches = Placed<int64_t>{prober_.accumulated() * 2, {}};
    LoaderSpec& loader = variant.data->train.front();
    loader.samples->value *= 2;
    return {fmt::format("accumulate_grad_batches: {}", prober_.accumulated() * 2),
            std::move(variant)};
  }

  void try_changes() {
    try_workers();
    std::vector<Variant> variants;
    add_argument("gradient_as_bucket_view", {true, {}}, variants);
    for (const int64_t cap_mb : {10, 100}) {
      add_argument("bucket_cap_mb", plain(cap_mb), variants);
    }
    if (rehearsal_.run.preparation.plan.activation_dtype == DType::fp32) {
      Scenario variant = prober_.base();
      variant.trainer->precision = Placed<std::string>{"bf16-mixed", {}};
      variants.push_back({"precision: bf16-mixed", std::move(variant)});
    }
    if (may_double_batch()) {
      try_doubled_batch();
      variants.push_back(with_doubled_accumulation());
    }
    prober_.probe_each(variants, [&](const Variant& variant, const Probe& short_run) {
      note_change(variant.text, short_run);
    });
  }

  const Rehearsal& rehearsal_;
  Prober prober_;
  const LoaderSpec* loader_;
  Results base_;  ///< of the scenario as it is, as short as its variants
  Advice advice_;
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
  const int64_t cost = Prober::cost_of(rehearsal.run);
  const bool short_enough = cost <= Prober::operations_max / 8;
  if (!trains || !predicts || (rehearsal.results.prediction.steps == 0 && !out_of_memory)) {
    return {};
  }
  if (!short_enough) {
    Advice advice;
    advice.not_tried =
        fmt::format("this run has {} operations and ranks, and variants are tried up to {}",
                    number_text(static_cast<double>(cost)),
                    number_text(static_cast<double>(Prober::operations_max / 8)));
    return advice;
  }
  note_phase(request.deadline.get(), "suggestions were tried");
  Adviser adviser(rehearsal, request);
  Advice advice = adviser.run();
  if (adviser.is_stopped() && request.deadline != nullptr) {
    advice.stopped = request.deadline->reason();
  }
  return advice;
}

}  // namespace lockstep::cli
