#pragma once

#include <cstdint>
#include <optional>

#include "model/trainer/loop/repeated_loop.hpp"

namespace lockstep {

/// Whether some statement gives a logger rows within epochs.
bool logs_rows(const TrainingProgram& program);
/// Steps between checkpoints within epochs; 0: there are none.
int64_t save_every(const TrainingProgram& program);

/// Whether Lightning counts a step at this batch of an epoch, whose last one it is: there a window
/// may be cut short, unless the strategy accumulates itself, over the ends of epochs.
bool steps_at(const TrainingProgram& program, int64_t batch, bool is_last);

/// Epochs of a fit that do the same as those before them. It tells the world, and counts what the
/// world leaves out.
class RepeatedEpochs {
 public:
  /// `length`: epochs of a period.
  RepeatedEpochs(Training& training, int64_t length)
      : training_(training), loop_(training, 2, length) {}

  /// Said before each epoch.
  void leave_out();

 private:
  bool are_alike(int64_t epoch, int64_t other) const;
  int64_t steps_of_epoch() const;
  int64_t last_alike() const;

  Training& training_;
  RepeatedLoop loop_;
};

/// `batches`: of an epoch. None: its epochs differ.
std::optional<RepeatedEpochs> repeated_epochs(Training& training, int64_t batches);

}  // namespace lockstep
