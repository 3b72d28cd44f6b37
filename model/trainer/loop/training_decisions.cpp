// Collective services of the trainer for callbacks and statements: decisions, objects, files.
#include "model/strategy/local_model/optimizer.hpp"
#include "model/trainer/callback/checkpoint_name.hpp"
#include "model/trainer/loop/training.hpp"

namespace lockstep {

Program Training::save_checkpoint(SiteId site, bool weights_only, int64_t path_length,
                                  const std::string& last) {
  co_await hooks_.run("on_save_checkpoint");
  interpreter_.streams().hand_over_compute();
  CheckpointRequest request;
  request.weights_only = weights_only;
  request.path = Bytes(pickled_bytes_of_text(path_length));
  request.disk = program_.disk;
  log_.checkpoint_bytes = co_await strategy_->save_checkpoint(rank_, request, site);
  if (!last.empty()) {
    co_await keep_checkpoint(last, weights_only);
  }
  co_await collectives_.barrier(site);
}

bool Training::should_update_logs() const {
  const int64_t every = program_.trainer.log_every_n_steps;
  return every > 0 && ((progress.batches_that_stepped + 1) % every == 0 || progress.should_stop);
}

void Training::log_row(std::map<std::string, double> values, std::optional<int64_t> step) {
  if (!program_.trainer.has_logger || values.empty()) {
    return;
  }
  const auto own = values.find("step");
  if (!step && own != values.end()) {
    step = static_cast<int64_t>(own->second);
    values.erase(own);
  } else if (!step) {
    values.emplace("epoch", static_cast<double>(progress.epoch));
  }
  ++log_.logger_row_count;
  log_.logger_rows.push_back({step.value_or(progress.batches_that_stepped), std::move(values)});
  if (log_.logger_rows.size() > RankLog::logger_rows_max) {
    log_.logger_rows.pop_front();
  }
}

void Training::repeat_since(const Counted& earlier, int64_t times) {
  progress.repeat_since(earlier.progress, times);
  callbacks_.repeat_since(earlier.by_callbacks, times);
  repeat_updates_since(earlier, times);
  const Staleness now = strategy_->staleness().value_or(Staleness{});
  staleness_left_out_.merge({(now.pushes - earlier.staleness.pushes) * times,
                             (now.updates - earlier.staleness.updates) * times, now.most,
                             (now.dropped - earlier.staleness.dropped) * times});
  strategy_->leave_out((progress.global_step - earlier.progress.global_step) / (times + 1) * times,
                       (progress.batches - earlier.progress.batches) / (times + 1) * times);
  micro_batches_ += (micro_batches_ - earlier.micro_batches) * times;
  if (results != nullptr) {
    results->repeat_since(earlier.logged, times);
  }
  log_.logger_row_count += (log_.logger_row_count - earlier.logger_rows) * times;
  log_.steps = progress.global_step;
  log_.epochs = progress.epoch;
}

void Training::remember(ProgramMemory& memory) const {
  interpreter_.tensors().remember(memory);
  if (results != nullptr) {
    results->remember(memory);
  }
}

// Updates that are alike are one row; of others there are as many rows as are kept.
void Training::repeat_updates_since(const Counted& earlier, int64_t times) {
  std::vector<WeightUpdate>& updates = log_.weight_updates;
  std::vector<WeightUpdate> period;
  if (earlier.updates > 0) {
    WeightUpdate again = updates[earlier.updates - 1];
    again.times -= earlier.times_of_last;
    if (again.times > 0) {
      period.push_back(again);
    }
  }
  period.insert(period.end(), updates.begin() + static_cast<int64_t>(earlier.updates),
                updates.end());
  if (period.empty()) {
    return;
  }
  if (period.size() == 1) {  // also the last row: it has been the only one for a period
    updates.back().times += period.front().times * times;
    return;
  }
  for (int64_t turn = 0; turn < times && updates.size() < RankLog::weight_updates_max; ++turn) {
    for (const WeightUpdate& update : period) {
      const WeightUpdate& last = updates.back();
      const bool again =
          last.does_as(update) && last.site == update.site && last.batches == update.batches;
      if (again) {
        updates.back().times += update.times;
      } else if (updates.size() < RankLog::weight_updates_max) {
        updates.push_back(update);
      }
    }
  }
}

bool Training::has_validation() const {
  return !program_.validation.empty() && program_.trainer.limit_validation.allows_any();
}

Program Training::publish_step_metrics() {
  if (program_.monitors_metrics && results != nullptr) {
    co_await results->publish_steps();
  }
}

}  // namespace lockstep
