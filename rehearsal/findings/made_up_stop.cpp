#include "rehearsal/findings/made_up_stop.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "model/scenario/expressions_of.hpp"
#include "rehearsal/findings/logged_metrics.hpp"

namespace lockstep::cli {

namespace {

constexpr const char* early_stopping = "EarlyStopping";

/// What an expression may be made of that every run knows.
constexpr auto known_names = std::to_array<std::string_view>(
    {"rank", "world_size", "local_rank", "node_rank", "is_global_zero", "is_last_batch",
     "global_step", "epoch", "batch_idx", "batch_size", "num_batches", "dataloader_idx",
     "sanity_checking"});

bool is_known(const Expression& expression) {
  return std::ranges::all_of(expression.names(), [](const std::string& name) {
    return std::ranges::find(known_names, name) != known_names.end();
  });
}

bool is_logged_from_known(const Scenario& scenario, const std::string& key) {
  bool found = false;
  bool known = true;
  for_each_statement(*scenario.program, [&](const Statement& statement) {
    if (statement.log.name && statement.log.value && statement.log.name->value == key) {
      found = true;
      known = known && is_known(statement.log.value->value);
    }
    for (const Binding& binding : statement.log.dictionary) {
      if (binding.name == key) {
        found = true;
        known = known && is_known(binding.expression);
      }
    }
  });
  return found && known;
}

// The user's own samples, from a file or by columns.
bool gives_values(const std::vector<LoaderSpec>& loaders) {
  return std::ranges::any_of(loaders, [](const LoaderSpec& loader) {
    return loader.values && loader.values->place.line > 0;
  });
}

bool is_made_up(const OneRun& run, const std::string& key) {
  const Scenario& scenario = *run.preparation.scenario;
  const std::vector<GlobalMetric> metrics = logged_metrics(run, nullptr);
  const auto metric = std::ranges::find(metrics, key, &GlobalMetric::key);
  if (metric != metrics.end() && metric->is_stand_in) {
    return true;
  }
  const bool given =
      scenario.data && (gives_values(scenario.data->train) || gives_values(scenario.data->val));
  return !given && scenario.program && !is_logged_from_known(scenario, key);
}

void never_stop(Object& callback) {
  constexpr auto deciding = std::to_array<std::string_view>(
      {"patience", "check_finite", "stopping_threshold", "divergence_threshold"});
  std::erase_if(callback.arguments, [&](const ObjectArgument& argument) {
    return std::ranges::find(deciding, argument.name) != deciding.end();
  });
  callback.arguments.push_back(
      {"patience", PlainValue{int64_t{std::numeric_limits<int32_t>::max()}, {}}, {}});
  callback.arguments.push_back({"check_finite", PlainValue{false, {}}, {}});
}

}  // namespace

std::optional<MadeUpStop> made_up_stop(const OneRun& run) {
  const RankLog& log = run.preparation.log->ranks.front();
  const std::optional<TrainerSpec>& trainer = run.preparation.scenario->trainer;
  if (!log.stopped_epoch || !trainer) {
    return std::nullopt;
  }
  for (const MonitorLog& monitor : log.monitors) {
    const bool stopped = std::ranges::any_of(monitor.turns, &MonitorTurn::done);
    if (monitor.name == early_stopping && stopped && is_made_up(run, monitor.monitor)) {
      const auto callback = std::ranges::find(trainer->callbacks, early_stopping, &Object::name);
      return MadeUpStop{monitor.monitor, *log.stopped_epoch,
                        callback == trainer->callbacks.end() ? trainer->place : callback->place};
    }
  }
  return std::nullopt;
}

Scenario to_planned_end(const OneRun& run) {
  Scenario scenario = *run.preparation.scenario;
  for (Object& callback : scenario.trainer->callbacks) {
    if (callback.name == early_stopping) {
      never_stop(callback);
    }
  }
  return scenario;
}

}  // namespace lockstep::cli
