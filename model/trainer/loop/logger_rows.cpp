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
  const auto own = values.find("step");
  if (!step && own != values.end()) {
    step = static_cast<int64_t>(own->second);
    values.erase(own);
  } else if (!step) {
    values.emplace("epoch", static_cast<double>(progress_.epoch));
  }
  ++log_.logger_row_count;
  log_.logger_rows.push_back({step.value_or(progress_.batches_that_stepped), std::move(values)});
  if (log_.logger_rows.size() > RankLog::logger_rows_max) {
    log_.logger_rows.pop_front();
  }
}

}  // namespace lockstep
