#include "model/trainer/loop/update_tally.hpp"

#include <vector>

namespace lockstep {

void UpdateTally::note_update(RankLog& log) {
  if (std::exchange(has_forward_, false) || log.samples_of_steps.empty()) {
    log.samples_of_steps.push_back(0);
  }
  log.samples_of_steps.back() += std::exchange(samples_, 0);
}

void UpdateTally::note_taken_over(RankLog& log) {
  WeightUpdate none;
  none.takes_over = true;
  none.batches = take_batches();
  log.add(none);
}

UpdateTally::Logged UpdateTally::logged(const RankLog& log) {
  const std::vector<WeightUpdate>& updates = log.weight_updates;
  return {updates.size(), updates.empty() ? 0 : updates.back().times};
}

// Updates that are alike are one row; of others there are as many rows as are kept.
void UpdateTally::repeat_since(const Logged& earlier, int64_t times, RankLog& log) {
  std::vector<WeightUpdate>& updates = log.weight_updates;
  std::vector<WeightUpdate> period;
  if (earlier.rows > 0) {
    WeightUpdate again = updates[earlier.rows - 1];
    again.times -= earlier.times_of_last;
    if (again.times > 0) {
      period.push_back(again);
    }
  }
  period.insert(period.end(), updates.begin() + static_cast<int64_t>(earlier.rows), updates.end());
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

}  // namespace lockstep
