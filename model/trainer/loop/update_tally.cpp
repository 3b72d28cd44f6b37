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

std::vector<WeightUpdate> UpdateTally::updates_since(const Logged& earlier, const RankLog& log) {
  const std::vector<WeightUpdate>& updates = log.weight_updates;
  std::vector<WeightUpdate> since;
  if (earlier.rows > 0) {
    WeightUpdate again = updates[earlier.rows - 1];
    again.times -= earlier.times_of_last;
    if (again.times > 0) {
      since.push_back(again);
    }
  }
  since.insert(since.end(), updates.begin() + static_cast<int64_t>(earlier.rows), updates.end());
  return since;
}

}  // namespace lockstep
