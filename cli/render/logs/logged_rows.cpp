#include "cli/render/logs/logged_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "rehearsal/findings/logger_keys.hpp"

namespace lockstep::cli {

namespace {

bool steps_within_epochs(const Scenario& scenario) {
  return std::ranges::any_of(scenario.schedulers, [](const Object& scheduler) {
    const PlainValue* interval = scheduler.find("interval");
    const auto* text = interval == nullptr ? nullptr : interval->get_if<std::string>();
    return text != nullptr && *text == "step";
  });
}

class RowMaker {
 public:
  RowMaker(const OneRun& run, const OneRun* valued, const StepTimes& times,
           const PlaceInTraining& place)
      : run_(valued != nullptr ? *valued : run),
        log_(run_.preparation.log->ranks.front()),
        rates_of_rows_(run.preparation.log->ranks.front().logger.rates),
        metrics_(logged_metrics(run_, nullptr)),
        times_(times),
        place_(place),
        end_step_(place.first_step + times.steps()),
        scenario_(*run.preparation.scenario) {
    const int64_t epochs = run.preparation.log->ranks.front().epochs;
    steps_of_epoch_ = place.steps_of_epoch > 0      ? place.steps_of_epoch
                      : epochs == 0                 ? times.steps()
                      : times.steps() % epochs == 0 ? times.steps() / epochs
                                                    : 0;
  }

  LoggedRows make(int64_t rows_max) {
    LoggedRows made;
    const std::optional<TrainerSpec>& trainer = scenario_.trainer;
    made.every_steps = trainer ? value_or(trainer->log_every_n_steps, int64_t{50}) : 0;
    std::map<int64_t, std::vector<LoggedRow>> by_step;
    if (made.every_steps > 0) {
      const int64_t rows = end_step_ / made.every_steps;
      made.stride = std::max<int64_t>(1, (rows + rows_max - 1) / rows_max);
      const int64_t each = made.every_steps * made.stride;
      const int64_t first = place_.first_step / each * each;
      for (int64_t step = first + each - 1; step < end_step_; step += each) {
        by_step[step].push_back(row_of_step(step, each));
      }
    }
    for (const LoggerRow& row : log_.logger.rows) {
      add_values(row, by_step[row.step]);
    }
    for (auto& [step, rows] : by_step) {
      std::move(rows.begin(), rows.end(), std::back_inserter(made.rows));
    }
    made.empty = {empty_.begin(), empty_.end()};
    return made;
  }

 private:
  std::optional<int64_t> epoch_of(int64_t step) const {
    return steps_of_epoch_ > 0 ? std::optional(step / steps_of_epoch_) : std::nullopt;
  }

  bool is_step(int64_t step) const { return step >= place_.first_step && step < end_step_; }
  // Of a step of the training, in this run.
  Time finish(int64_t step) const { return place_.began + times_.finish(step - place_.first_step); }

  LoggedRow row_of_step(int64_t step, int64_t every) const {
    LoggedRow row{step, epoch_of(step), finish(step), {}};
    add_learning_rates(row);
    add_spread(row);
    const Time begin = is_step(step - every) ? finish(step - every) : place_.began;
    int64_t samples = 0;
    for (int64_t each = std::max(place_.first_step, step - every + 1); each <= step; ++each) {
      samples += times_.samples(each - place_.first_step).value_or(0);
    }
    if (samples > 0 && *row.time > begin) {
      row.values["samples_per_s"] = static_cast<double>(samples) / seconds(*row.time - begin);
    }
    return row;
  }

  // Where replicas differ by design; of steps that all of them took.
  void add_spread(LoggedRow& row) const {
    const int64_t step = row.step - place_.first_step + 1;
    const auto& known = run_.weight_spreads.steps;
    const auto found =
        std::ranges::lower_bound(known, step, std::less(), &WeightSpreads::OfStep::step);
    if (found != known.end() && found->step == step) {
      row.values["weights_apart"] = found->apart;
    }
  }

  void add_learning_rates(LoggedRow& row) const {
    const std::vector<OptimizerPlan>& optimizers = run_.preparation.plan.optimizers;
    const std::vector<std::vector<double>>& rates = log_.learning_rates;
    for (size_t optimizer = 0; optimizer < optimizers.size(); ++optimizer) {
      const std::string name = optimizer < scenario_.optimizers.size()
                                   ? scenario_.optimizers[optimizer].name
                                   : std::to_string(optimizer);
      const bool is_again = std::ranges::count(scenario_.optimizers, name, &Object::name) > 1;
      const std::string key =
          is_again ? fmt::format("lr-{}-{}", name, optimizer) : "lr-" + name;  // as its monitor
      const bool is_known = optimizer < rates.size() && row.epoch &&
                            static_cast<size_t>(*row.epoch) < rates[optimizer].size() &&
                            !steps_within_epochs(scenario_);
      if (scenario_.schedulers.empty()) {
        row.values[key] = optimizers[optimizer].lr;
      } else if (is_known) {
        row.values[key] = rates[optimizer][static_cast<size_t>(*row.epoch)];
      } else if (const std::optional<double> rate = rate_of_step(row.step, optimizer)) {
        row.values[key] = *rate;
      }
    }
  }

  // Where schedulers step within epochs.
  std::optional<double> rate_of_step(int64_t step, size_t optimizer) const {
    const auto found = std::ranges::lower_bound(rates_of_rows_, step, {}, &RatesOfRow::step);
    const bool is_known = found != rates_of_rows_.end() && found->step == step;
    return is_known ? std::optional(found->rates[optimizer]) : std::nullopt;
  }

  bool is_computed(const std::string& key) {
    const std::string base = without_fork(key);
    const auto metric = std::ranges::find_if(
        metrics_, [&](const GlobalMetric& one) { return one.key == key || one.key == base; });
    return run_.preparation.options.numerics || (metric != metrics_.end() && !metric->is_stand_in);
  }

  // Whether some key of the row was logged like this, in a hook of this kind.
  template <class Like>
  bool has_key(const LoggerRow& row, Like like) const {
    return std::ranges::any_of(row.values, [&](const auto& value) {
      const std::string base = without_fork(value.first);
      return std::ranges::any_of(log_.logged, [&](const LoggedKey& known) {
        return (known.key == value.first || known.key == base) && like(known, value.first);
      });
    });
  }

  bool is_of_evaluation(const LoggerRow& row) const {
    return has_key(row, [](const LoggedKey& known, const std::string&) {
      return known.hook.find("validation") != std::string::npos;
    });
  }

  bool is_of_batch(const LoggerRow& row) const {
    return has_key(row, [](const LoggedKey& known, const std::string& key) {
      const bool is_fork = key != known.key && key.find("_step") != std::string::npos;
      return known.hook.find("validation") == std::string::npos && (known.of_last_batch || is_fork);
    });
  }

  // A row of a batch of the training stands there already; what an epoch gives follows it.
  void add_values(const LoggerRow& logged, std::vector<LoggedRow>& rows) {
    LoggedRow row{logged.step, std::nullopt, std::nullopt, {}};
    for (const auto& [key, value] : logged.values) {
      if (key == "epoch") {
        row.epoch = static_cast<int64_t>(value);
      } else if (logged.is_of_rates || is_computed(key)) {
        row.values[key] = value;
      } else {
        empty_.insert(key);
      }
    }
    if (row.values.empty()) {
      return;
    }
    const bool is_of_step = logged.is_of_rates || (row.epoch && is_of_batch(logged));
    if (is_step(logged.step) && is_of_step) {
      if (rows.empty()) {
        const std::optional<int64_t> epoch = row.epoch ? row.epoch : epoch_of(logged.step);
        rows.push_back({logged.step, epoch, finish(logged.step), {}});
      }
      rows.front().values.merge(row.values);
      return;
    }
    if (row.epoch && times_.steps() > 0) {
      row.time = end_of(std::clamp(logged.step, place_.first_step, end_step_ - 1),
                        is_of_evaluation(logged));
    }
    rows.push_back(std::move(row));
  }

  Time end_of(int64_t step, bool evaluates) const {
    const int64_t own = step - place_.first_step;
    for (const int64_t each : {own, own - 1}) {
      if (const std::optional<Time> end =
              evaluates && each >= 0 ? times_.evaluation_end(each) : std::nullopt) {
        return place_.began + *end;
      }
    }
    return place_.began + times_.evaluation_end(own).value_or(times_.finish(own));
  }

  const OneRun& run_;
  const RankLog& log_;
  const std::vector<RatesOfRow>& rates_of_rows_;
  std::vector<GlobalMetric> metrics_;
  const StepTimes& times_;
  const PlaceInTraining& place_;
  int64_t end_step_;
  const Scenario& scenario_;
  int64_t steps_of_epoch_ = 0;
  std::set<std::string> empty_;
};

}  // namespace

LoggedRows logged_rows(const OneRun& run, const OneRun* valued, const StepTimes& times,
                       const PlaceInTraining& place, int64_t rows_max) {
  return RowMaker(run, valued, times, place).make(rows_max);
}

}  // namespace lockstep::cli
