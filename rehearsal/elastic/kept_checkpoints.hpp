#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "model/trainer/checkpoint/checkpoint_store.hpp"

namespace lockstep::cli {

/// The checkpoints `last` that ranks of one attempt have written, as the next attempt finds them.
class KeptCheckpoints : public CheckpointStore {
 public:
  /// The newest that is complete: rank 0 writes everything, or each of `ranks` its part.
  std::shared_ptr<const SavedTraining> newest(bool rank_0_writes_all, int32_t ranks) const;
  /// What all ranks had trained on by then, in this attempt.
  std::vector<TrainedSamples> trained_until(int64_t number) const;

 protected:
  /// Of a rank, oldest first: at least the last two.
  virtual std::vector<SavedTraining> parts_of(int32_t rank) const = 0;
  virtual std::vector<int32_t> ranks() const = 0;
};

/// In the memory of this process.
class MemoryCheckpoints final : public KeptCheckpoints {
 public:
  void keep(int32_t rank, SavedTraining saved) override;

 protected:
  std::vector<SavedTraining> parts_of(int32_t rank) const override;
  std::vector<int32_t> ranks() const override;

 private:
  mutable std::mutex mutex_;
  std::map<int32_t, std::vector<SavedTraining>> by_rank_;
};

}  // namespace lockstep::cli
