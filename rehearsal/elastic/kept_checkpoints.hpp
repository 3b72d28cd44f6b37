#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "model/program/rank_classes.hpp"
#include "model/trainer/checkpoint/checkpoint_store.hpp"

namespace lockstep::cli {

/// The checkpoints `last` that ranks of one attempt have written, as the next attempt finds them.
class KeptCheckpoints : public CheckpointStore {
 public:
  /// The newest that is complete: rank 0 writes everything, or each of `ranks` its part.
  /// `classes`: a part of the rank that ran for others stands for theirs; null: each ran.
  std::shared_ptr<const SavedTraining> newest(bool rank_0_writes_all, int32_t ranks,
                                              const RankClasses* classes) const;
  /// What a rank that ran had trained on by then, in this attempt.
  std::vector<TrainedSamples> trained_until(int64_t number, int32_t rank) const;

 protected:
  /// Of a rank, oldest first: at least the last two.
  virtual std::vector<SavedTraining> parts_of(int32_t rank) const = 0;
};

/// In the memory of this process.
class MemoryCheckpoints final : public KeptCheckpoints {
 public:
  void keep(int32_t rank, SavedTraining saved) override;

 protected:
  std::vector<SavedTraining> parts_of(int32_t rank) const override;

 private:
  mutable std::mutex mutex_;
  std::map<int32_t, std::vector<SavedTraining>> by_rank_;
};

}  // namespace lockstep::cli
