#include "model/trainer/loop/period_tally.hpp"

#include <algorithm>
#include <iterator>

#include "model/trainer/loop/repeated_epochs.hpp"
#include "model/trainer/loop/repeated_updates.hpp"
#include "model/trainer/loop/training.hpp"

namespace lockstep {

void PeriodTally::begin(int64_t number) {
  number_ = number;
  begun_ = counted();
  if (logs_ && training_.results != nullptr) {
    training_.results->begin_period();
  }
}

// Most periods count what the one before did.
void PeriodTally::end() {
  auto now = std::make_shared<const PeriodCounts>(counts());
  if (last_ && *last_ == *now) {
    now = last_;
  }
  last_ = now;
  periods_.resize(static_cast<size_t>(number_));
  periods_.push_back(std::move(now));
}

void PeriodTally::leave_out(const std::vector<RepeatedPeriods>& repeats, int64_t batch) {
  batch_ = batch;
  count(repeats, 0, repeats.size());
}

void PeriodTally::count(const std::vector<RepeatedPeriods>& repeats, size_t begin, size_t end) {
  for (size_t entry = begin; entry < end; ++entry) {
    const RepeatedPeriods& each = repeats[entry];
    const bool is_one = !each.entries_from && each.end == each.first + 1;
    for (int64_t turn = 0; turn < (is_one ? 1 : each.times); ++turn) {
      if (each.entries_from) {
        count(repeats, *each.entries_from, entry);
        continue;
      }
      for (int64_t number = each.first; number < each.end; ++number) {
        const auto& counts = periods_.at(static_cast<size_t>(number));
        ensure(counts != nullptr, "what a period counts is known before it is repeated");
        count(*counts, is_one ? each.times : 1);
      }
    }
  }
}

void PeriodTally::count(const PeriodCounts& period, int64_t times) {
  RankLog& log = training_.log();
  UpdateTally& updates = training_.batches().tally();
  rates_.clear();
  if (training_.program().schedulers.empty()) {
    repeat_updates(period, times, updates, log);
  } else {
    step_schedules(period, times);
  }
  updates.leave_out(period.since_update, !period.updates.empty(), period.micro_batches, times);
  add_rows(period, times);
  training_.callbacks().count_left_out(period.by_callbacks, times);
  training_.model().leave_out({period.staleness.pushes * times, period.staleness.updates * times,
                               period.staleness.most, period.staleness.dropped * times});
  training_.strategy().leave_out(period.steps * times, period.batches * times);
  if (logs_ && training_.results != nullptr) {
    training_.results->log_left_out(period.logged, times);
  }
  log.steps = training_.progress.global_step;
  log.epochs = training_.progress.epoch;
  batch_ += period.epochs > 0 ? 0 : period.batches * times;
}

// Rows show at which step each of them came.
void PeriodTally::add_rows(const PeriodCounts& period, int64_t times) {
  Progress& progress = training_.progress;
  training_.log().logger.row_count += period.logger_rows * times;
  const auto shown = static_cast<int64_t>(RankLog::logger_rows_max);
  std::vector<LoggerRow> rows;
  // Where metrics are not alike, the steps of the last rows are simulated.
  std::ranges::copy_if(period.rows, std::back_inserter(rows), [&](const LoggerRow& row) {
    return row.is_of_rates || training_.program().repetition.logs;
  });
  const int64_t listed = rows.empty() ? 0 : std::min(times, shown);
  const auto go_on = [&](int64_t periods) {
    progress.global_step += period.steps * periods;
    progress.batches_that_stepped += period.batches_that_stepped * periods;
    progress.epoch += period.epochs * periods;
    progress.batches += period.batches * periods;
  };
  go_on(times - listed);
  const bool rates_change = LoggerRows::rates_change(training_.program());
  int64_t next =
      std::ssize(rates_) - listed * std::ranges::count(rows, true, &LoggerRow::is_of_rates);
  for (int64_t turn = 0; turn < listed; ++turn) {
    for (LoggerRow& row : rows) {
      if (row.is_of_rates && rates_change) {
        // Of others there are so many that they are listed no more.
        row.values = next < 0 ? Callback::Rates() : rates_[static_cast<size_t>(next)];
        ++next;
      }
    }
    training_.logger_rows().add_left_out(rows);
    go_on(1);
  }
  if (period.logger_rows > std::ssize(rows)) {
    training_.log().logger.rows_before_gap = training_.log().logger.rows.size();
  }
}

// Of batches that have been left out: what their optimizers and schedulers would have done.
void PeriodTally::step_schedules(const PeriodCounts& period, int64_t times) {
  const TrainingProgram& program = training_.program();
  Progress& progress = training_.progress;
  const int64_t stepped_before = progress.batches_that_stepped;
  const bool of_epochs = period.epochs > 0;
  int64_t epoch = progress.epoch;
  int64_t batch = of_epochs ? 0 : batch_;
  UpdatesByBatch updates(period, training_.batches().tally());
  for (int64_t left_out = 0; left_out < period.batches * times; ++left_out) {
    if (of_epochs && batch == 0) {
      training_.rates().log(training_.log());
      take_rates(CallbackHook::train_epoch_start);
    }
    const bool is_last = of_epochs && batch + 1 == progress.num_batches;
    const bool steps = steps_at(program, batch, is_last);
    if (training_.logger_rows().are_due()) {
      take_rates(CallbackHook::train_batch_start);
    }
    if (steps) {
      training_.logger_rows().note_rates(training_.rates());
    }
    updates.take(program.optimizer_names, training_.rates(), training_.log());
    if (program.trainer.automatic_optimization) {
      training_.schedulers().schedules().step_after(batch, epoch, steps, is_last);
    }
    progress.batches_that_stepped += steps ? 1 : 0;
    epoch += is_last ? 1 : 0;
    batch = is_last ? 0 : batch + 1;
  }
  progress.batches_that_stepped = stepped_before;  // the rows go on from there
}

void PeriodTally::take_rates(CallbackHook hook) {
  if (!LoggerRows::rates_change(training_.program())) {
    return;
  }
  for (Callback::Rates& row : training_.callbacks().rates_at(hook)) {
    for (const auto& [name, rate] : row) {
      training_.log().metrics[name] = rate;
    }
    rates_.push_back(std::move(row));
    if (rates_.size() > RankLog::logger_rows_max) {
      rates_.pop_front();
    }
  }
}

PeriodTally::Counted PeriodTally::counted() const {
  const UpdateTally& updates = training_.batches().tally();
  return {training_.progress,
          training_.log().logger.row_count,
          training_.logger_rows().listed(),
          updates.micro_batches(),
          UpdateTally::logged(training_.log()),
          updates.since_update(),
          training_.callbacks().counted(),
          training_.strategy().staleness().value_or(Staleness{})};
}

PeriodCounts PeriodTally::counts() const {
  const Counted now = counted();
  PeriodCounts period;
  period.steps = now.progress.global_step - begun_.progress.global_step;
  period.batches_that_stepped =
      now.progress.batches_that_stepped - begun_.progress.batches_that_stepped;
  period.epochs = now.progress.epoch - begun_.progress.epoch;
  period.batches = now.progress.batches - begun_.progress.batches;
  period.logger_rows = now.logger_rows - begun_.logger_rows;
  period.micro_batches = now.micro_batches - begun_.micro_batches;
  period.updates = UpdateTally::updates_since(begun_.updates, training_.log());
  count_from_beginning(period.updates, begun_.since_update.batches);
  period.since_update = now.since_update;
  if (period.updates.empty()) {
    period.since_update.batches -= begun_.since_update.batches;
    period.since_update.samples -= begun_.since_update.samples;
  }
  for (size_t index = 0; index < now.by_callbacks.size(); ++index) {
    period.by_callbacks.push_back(now.by_callbacks[index] - begun_.by_callbacks[index]);
  }
  period.staleness = {now.staleness.pushes - begun_.staleness.pushes,
                      now.staleness.updates - begun_.staleness.updates, now.staleness.most,
                      now.staleness.dropped - begun_.staleness.dropped};
  period.rows = training_.logger_rows().since(begun_.listed_rows, begun_.progress);
  if (logs_ && training_.results != nullptr) {
    period.logged = training_.results->of_period();
  }
  return period;
}

}  // namespace lockstep
