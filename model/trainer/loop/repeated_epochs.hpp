#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/trainer/loop/counted_decisions.hpp"
#include "model/trainer/loop/repeated_loop.hpp"

namespace lockstep {

/// Whether some statement or LearningRateMonitor gives a logger rows within epochs.
bool logs_rows(const TrainingProgram& program);
/// The step of a fit from which rows of the logger show values that differ between steps, so that
/// each is run: as many rows as are kept come until its end, if nothing stops it early.
/// TrainerSettings::no_limit: none does. `raises_at`: the step in which a scheduler raises.
int64_t rows_shown_from(const TrainingProgram& program, int64_t steps_of_epoch, int64_t raises_at);
/// Steps between checkpoints within epochs; 0: there are none.
int64_t save_every(const TrainingProgram& program);
/// Whether these are known to do the same each time, but for the numbers in the names of their
/// files.
bool saves_alike(const TrainingProgram& program);
/// Which of them a fit saves behind so many steps, and how long the numbers in their names are; 0:
/// none.
int64_t kind_of_save(const TrainingProgram& program, int64_t steps, int64_t epoch);

/// Whether Lightning counts a step at this batch of an epoch, whose last one it is: there a window
/// may be cut short, unless the strategy accumulates itself, over the ends of epochs.
bool steps_at(const TrainingProgram& program, int64_t batch, bool is_last);

/// Epochs of a fit that do the same as those before them. It tells the world, and counts what the
/// world leaves out.
class RepeatedEpochs final : PeriodKinds {
 public:
  /// What comes again in periods of epochs.
  struct Period {
    int64_t epochs = 1;
    int64_t end = 0;        ///< the first epoch that differs from all before it
    int64_t steps = 0;      ///< of all of them, as the logger counts
    int64_t batches = 0;    ///< of all of them
    int64_t log_every = 0;  ///< steps between rows, which fall on other batches; 0: on the same
  };
  RepeatedEpochs(Training& training, const Period& period);

  /// Said before each epoch.
  void leave_out();

 private:
  bool are_alike(int64_t epoch, int64_t other) const;
  int64_t steps_of_epoch() const;
  int64_t last_alike() const;
  /// Behind the last epoch below `end` that is like this one.
  int64_t last_like(int64_t epoch, int64_t end) const;
  int64_t kind_of(int64_t period) const override;
  int64_t alike_from(int64_t period) const override;
  int64_t lengths_of_names(int64_t epoch) const;
  /// What is decided in the epochs of a period, also by the strategy.
  std::vector<int64_t> decided_in(int64_t period) const;
  uint64_t decision_of(int64_t epoch) const;
  int64_t next_kept() const;

  Training& training_;
  RepeatedLoop loop_;
  Period period_;
  int64_t kind_;  ///< of this loop
  bool decides_by_epoch_ = false;
  mutable CountedDecisions decisions_;
  mutable std::vector<uint64_t> decision_by_epoch_;  ///< as far as they were asked for
};

/// `batches`: of an epoch. `schedules_end`: as batches_until_schedule_ends() counts. None: its
/// epochs differ.
std::optional<RepeatedEpochs> repeated_epochs(Training& training, int64_t batches,
                                              int64_t schedules_end);

}  // namespace lockstep
