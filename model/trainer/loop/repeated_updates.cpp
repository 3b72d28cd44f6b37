#include "model/trainer/loop/repeated_updates.hpp"

#include <algorithm>

namespace lockstep {

// Updates that are alike are one row.
void repeat_updates(const std::vector<WeightUpdate>& period, int64_t times, RankLog& log) {
  if (period.size() == 1) {
    WeightUpdate all = period.front();
    all.times *= times;
    log.add(all);
    return;
  }
  for (int64_t turn = 0; turn < times && !log.weight_updates_cut; ++turn) {
    for (const WeightUpdate& update : period) {
      log.add(update);
    }
  }
}

// Optimizers that step one after the other do so in one batch: none lies between their updates.
void UpdatesByBatch::take(const std::vector<std::string>& names, const OptimizerRates& rates,
                          RankLog& log) {
  if (period_.empty() || log.weight_updates_cut) {
    return;
  }
  ++since_;
  for (int64_t in_batch = 0; in_batch < updates_ && period_[row_].batches == since_; ++in_batch) {
    WeightUpdate update = period_[row_];
    const auto name = std::ranges::find(names, update.optimizer);
    if (!update.takes_over) {
      update.learning_rate =
          rates.learning_rate(name == names.end() ? 0 : static_cast<size_t>(name - names.begin()));
    }
    update.times = 1;
    log.add(update);
    since_ = 0;
    if (++taken_ == period_[row_].times) {
      taken_ = 0;
      row_ = (row_ + 1) % period_.size();
    }
  }
}

}  // namespace lockstep
