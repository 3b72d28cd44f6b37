#include "model/trainer/loop/repeated_updates.hpp"

#include <algorithm>

namespace lockstep {

namespace {

void add_period(const PeriodCounts& period, int64_t before, RankLog& log) {
  std::vector<WeightUpdate> updates = period.updates;
  updates.front().batches += before;
  for (const WeightUpdate& update : updates) {
    log.add(update);
  }
}

}  // namespace

void count_from_beginning(std::vector<WeightUpdate>& updates, int64_t before) {
  if (updates.empty()) {
    return;
  }
  WeightUpdate& first = updates.front();
  const WeightUpdate others = first;
  first.batches -= before;
  first.times = 1;
  if (others.times > 1) {
    updates.insert(updates.begin() + 1, others);
    --updates[1].times;
  }
}

// Updates that are alike are one row.
void repeat_updates(const PeriodCounts& period, int64_t times, const UpdateTally& tally,
                    RankLog& log) {
  if (period.updates.empty() || times == 0) {
    return;
  }
  add_period(period, tally.since_update().batches, log);
  const int64_t since = period.since_update.batches;
  if (period.updates.size() == 1 && times > 1) {
    WeightUpdate others = period.updates.front();
    others.batches += since;
    others.times = times - 1;
    log.add(others);
    return;
  }
  for (int64_t turn = 1; turn < times && !log.weight_updates_cut; ++turn) {
    add_period(period, since, log);
  }
}

UpdatesByBatch::UpdatesByBatch(const PeriodCounts& period, const UpdateTally& tally)
    : period_(period), since_(tally.since_update().batches) {
  begin_period();
}

void UpdatesByBatch::begin_period() {
  batch_ = 0;
  row_ = 0;
  taken_ = 0;
  next_ = period_.updates.empty() ? 0 : period_.updates.front().batches;
}

// Optimizers that step one after the other do so in one batch: none lies between their updates.
void UpdatesByBatch::take(const std::vector<std::string>& names, const OptimizerRates& rates,
                          RankLog& log) {
  ++since_;
  if (++batch_ > period_.batches) {
    begin_period();
    ++batch_;
  }
  while (next_ == batch_ && row_ < period_.updates.size()) {
    WeightUpdate update = period_.updates[row_];
    const auto name = std::ranges::find(names, update.optimizer);
    if (!update.takes_over) {
      update.learning_rate =
          rates.learning_rate(name == names.end() ? 0 : static_cast<size_t>(name - names.begin()));
    }
    update.times = 1;
    update.batches = since_;
    log.add(update);
    since_ = 0;
    if (++taken_ == period_.updates[row_].times) {
      taken_ = 0;
      ++row_;
    }
    next_ += row_ < period_.updates.size() ? period_.updates[row_].batches : 0;
  }
}

}  // namespace lockstep
