#include "model/trainer/loop/logger_rows.hpp"

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
  ++log_.logger_row_count;
  row.step = step.value_or(progress_.batches_that_stepped);
  row.values = std::move(values);
  list(std::move(row));
}

void LoggerRows::list(LoggerRow row) {
  listed_ += row.counts_training ? 1 : 0;
  log_.logger_rows.push_back(std::move(row));
  if (log_.logger_rows.size() > RankLog::logger_rows_max) {
    log_.logger_rows.pop_front();
  }
}

std::vector<LoggerRow> LoggerRows::since(int64_t listed, const Progress& beginning) const {
  std::vector<LoggerRow> rows;
  const int64_t count = listed_ - listed;
  for (auto row = log_.logger_rows.rbegin();
       row != log_.logger_rows.rend() && std::ssize(rows) < count; ++row) {
    if (row->counts_training) {
      rows.insert(rows.begin(), *row);
      rows.front().step -= beginning.batches_that_stepped;
      rows.front().values["epoch"] -= static_cast<double>(beginning.epoch);
    }
  }
  return rows;
}

void LoggerRows::add_left_out(const std::vector<LoggerRow>& rows) {
  for (LoggerRow row : rows) {
    row.step += progress_.batches_that_stepped;
    row.values["epoch"] += static_cast<double>(progress_.epoch);
    list(std::move(row));
  }
}

}  // namespace lockstep
