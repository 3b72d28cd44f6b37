#pragma once

#include <optional>

#include "model/trainer/loop/mirrored_steps.hpp"
#include "model/trainer/loop/repeated_batches.hpp"
#include "model/trainer/loop/repeated_epochs.hpp"

namespace lockstep {

/// Which batches and epochs of a fit repeat others, in whose epochs ranks are in step or not.
class FitPeriods {
 public:
  explicit FitPeriods(Training& training);

  /// The training begins, with epochs of so many batches.
  void begin(int64_t batches);
  /// Behind an epoch; `go_on_together`: all ranks are (Strategy::join).
  void end_epoch(bool go_on_together);
  void end_fit();

  /// Said before each epoch.
  void leave_out_epochs();
  /// What of an epoch comes at intervals of its own.
  struct Epoch {
    int64_t ahead = 0;        ///< batches that are prepared
    int64_t check_every = 0;  ///< batches between validations; 0: none
    int64_t check_phase = 0;  ///< batches that count before this epoch
    bool is_resumed = false;  ///< within it
  };
  /// Of the epoch that begins; nothing where none repeats another.
  std::optional<RepeatedBatches> batches_of(const Epoch& epoch);
  MirroredSteps mirrored_steps();

 private:
  bool counts_by_strategy() const;

  Training& training_;
  CountedDecisions decisions_;
  std::optional<RepeatedEpochs> epochs_;
  int64_t kind_;           ///< of windows, in epochs that do the same
  int64_t mirrored_kind_;  ///< of steps that a rank without data mirrors
  bool go_on_together_ = false;
  /// Progress::batches when a scheduler raises.
  int64_t schedules_end_ = TrainerSettings::no_limit;
};

}  // namespace lockstep
