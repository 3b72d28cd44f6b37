#pragma once

#include <memory>

#include "model/trainer/checkpoint/saved_training.hpp"

namespace lockstep {

/// A file system that outlives a world: what the next attempt finds. Implemented outside the model.
class CheckpointStore {
 public:
  virtual ~CheckpointStore() = default;
  /// A rank has written its part of a checkpoint `last`. Ranks may be threads.
  virtual void keep(int32_t rank, SavedTraining saved) = 0;
};

}  // namespace lockstep
