#include "rehearsal/elastic/kept_checkpoints.hpp"

#include <algorithm>

namespace lockstep::cli {

std::shared_ptr<const SavedTraining> KeptCheckpoints::newest(bool rank_0_writes_all, int32_t ranks,
                                                             const RankClasses* classes) const {
  std::vector<SavedTraining> of_rank_0 = parts_of(0);
  if (of_rank_0.empty()) {
    return nullptr;
  }
  int64_t number = of_rank_0.back().number;
  for (int32_t rank = 1; rank < ranks && !rank_0_writes_all; ++rank) {
    if (classes == nullptr || classes->is_first(rank)) {
      const std::vector<SavedTraining> parts = parts_of(rank);
      number = std::min(number, parts.empty() ? 0 : parts.back().number);
    }
  }
  const auto found = std::ranges::find(of_rank_0, number, &SavedTraining::number);
  return found == of_rank_0.end() ? nullptr
                                  : std::make_shared<const SavedTraining>(std::move(*found));
}

std::vector<TrainedSamples> KeptCheckpoints::trained_until(int64_t number, int32_t rank) const {
  std::vector<SavedTraining> parts = parts_of(rank);
  const auto found = std::ranges::find(parts, number, &SavedTraining::number);
  return found == parts.end() ? std::vector<TrainedSamples>() : std::move(found->trained);
}

void MemoryCheckpoints::keep(int32_t rank, SavedTraining saved) {
  const std::lock_guard lock(mutex_);
  std::vector<SavedTraining>& parts = by_rank_[rank];
  parts.push_back(std::move(saved));
  if (parts.size() > 2) {  // a rank may be one ahead of another
    parts.erase(parts.begin());
  }
}

std::vector<SavedTraining> MemoryCheckpoints::parts_of(int32_t rank) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_rank_.find(rank);
  return found == by_rank_.end() ? std::vector<SavedTraining>() : found->second;
}

}  // namespace lockstep::cli
