#include "model/trainer/loop/logger_rows.hpp"

#include <algorithm>
#include <utility>

namespace lockstep {

bool LoggerRows::are_due() const {
  const int64_t every = program_.trainer.log_every_n_steps;
  return every > 0 && ((progress_.batches_that_stepped + 1) % every == 0 || progress_.should_stop);
}

void LoggerRows::add(std::map<std::string, double> values, std::optional<int64_t> step) {
  if (!program_.trainer.has_logger || values.empty()) {
    return;
  }
  LoggerRow row;
  const auto own = values.find("step");
  if (!step && own != values.end()) {
    step = static_cast<int64_t>(own->second);
    values.erase(own);
  } else if (!step) {
    values.emplace("epoch", static_cast<double>(progress_.epoch));
    row.counts_training = true;
  }
  ++log_.logger.row_count;
  row.step = step.value_or(progress_.batches_that_stepped);
  row.values = std::move(values);
  list(std::move(row));
}

void LoggerRows::add_rates(std::map<std::string, double> values) {
  if (!program_.trainer.has_logger || values.empty()) {
    return;
  }
  ++log_.logger.row_count;
  LoggerRow row;
  row.step = progress_.batches_that_stepped;
  row.values = std::move(values);
  row.is_of_rates = true;
  list(std::move(row));
}

void LoggerRows::note_rates(const OptimizerRates& rates) {
  const bool change_within_epochs =
      std::ranges::any_of(program_.schedulers, [](const SchedulerSettings& scheduler) {
        return scheduler.interval == SchedulerInterval::step;
      });
  if (!notes_rates_ || !change_within_epochs || !program_.trainer.has_logger || !are_due()) {
    return;
  }
  RatesOfRow row{progress_.batches_that_stepped, {}};
  for (size_t optimizer = 0; optimizer < program_.plan.optimizers.size(); ++optimizer) {
    row.rates.push_back(rates.learning_rate(optimizer));
  }
  log_.logger.rates.push_back(std::move(row));
}

void LoggerRows::list(LoggerRow row) {
  listed_ += row.counts_training || row.is_of_rates ? 1 : 0;
  log_.logger.rows.push_back(std::move(row));
  if (log_.logger.rows.size() > RankLog::logger_rows_max) {
    log_.logger.rows.pop_front();
    log_.logger.rows_before_gap -= log_.logger.rows_before_gap > 0 ? 1 : 0;
  }
}

std::vector<LoggerRow> LoggerRows::since(int64_t listed, const Progress& beginning) const {
  std::vector<LoggerRow> rows;
  const int64_t count = listed_ - listed;
  for (auto row = log_.logger.rows.rbegin();
       row != log_.logger.rows.rend() && std::ssize(rows) < count; ++row) {
    if (!row->counts_training && !row->is_of_rates) {
      continue;
    }
    rows.insert(rows.begin(), *row);
    rows.front().step -= beginning.batches_that_stepped;
    if (row->counts_training) {
      rows.front().values["epoch"] -= static_cast<double>(beginning.epoch);
    } else if (rates_change(program_)) {
      rows.front().values.clear();
    }
  }
  return rows;
}

void LoggerRows::add_left_out(const std::vector<LoggerRow>& rows) {
  for (LoggerRow row : rows) {
    row.step += progress_.batches_that_stepped;
    if (row.counts_training) {
      row.values["epoch"] += static_cast<double>(progress_.epoch);
    }
    list(std::move(row));
  }
}

}  // namespace lockstep
