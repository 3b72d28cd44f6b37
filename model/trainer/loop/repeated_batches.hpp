#pragma once

#include <cstdint>
#include <vector>

#include "model/trainer/loop/decided_windows.hpp"
#include "model/trainer/loop/repeated_loop.hpp"

namespace lockstep {

/// Batches of one pass over the training data that do the same as those before them. It tells the
/// world, and goes on behind the batches that the world leaves out.
class RepeatedBatches final : PeriodKinds {
 public:
  /// What interrupts the repetition, by batch of this pass. Where it never comes: no_limit.
  struct Schedule {
    static constexpr int64_t no_limit = TrainerSettings::no_limit;
    int64_t batches = 0;     ///< of the pass; the last one differs
    int64_t window = 1;      ///< that are accumulated for one step
    int64_t ahead = 0;       ///< that are prepared; the first orders them, the last order none
    int64_t steps_left = 0;  ///< optimizer steps until max_steps, from batch 0 on
    int64_t log_every = 0;   ///< steps between rows of the logger; 0: they do nothing
    int64_t log_phase = 0;   ///< steps before this pass, counted as the logger does
    int64_t rows_shown_from = no_limit;  ///< the step from which each row has to be run
    int64_t check_every = 0;             ///< batches between validations within the pass; 0: none
    int64_t check_phase = 0;             ///< batches that count before this pass
    int64_t save_every = 0;              ///< steps between checkpoints; 0: none within the pass
    int64_t save_phase = 0;              ///< optimizer steps before this pass
    bool saves_alike = false;            ///< each of them does what those before it did
    int64_t raises_at = -1;  ///< the batch in which a scheduler raises; before this pass: none
    int64_t kind = 0;        ///< of windows, in all passes that do the same
  };
  /// `decisions`: by window of this pass, empty where there are none.
  RepeatedBatches(Training& training, const Schedule& schedule,
                  const std::vector<int64_t>& decisions);
  /// What the training itself says of the pass that begins: all but `ahead` and `check_`.
  /// `schedules_end`: as batches_until_schedule_ends() counts.
  static Schedule schedule_of(const Training& training, int64_t schedules_end);

  /// Said before batch `number`. Gives how many batches are left out.
  int64_t left_out(int64_t number);

 private:
  /// The first batch from `number` on that differs.
  int64_t next_different(int64_t number) const;
  /// Of a window from the present one on: what is decided in it, also by the strategy, and whether
  /// the logger gets a row.
  int64_t kind_of(int64_t window) const override;
  int64_t alike_from(int64_t window) const override;
  std::vector<int64_t> strategy_kind(int64_t window) const;
  /// Steps until the logger gets the next row, that of the window included.
  int64_t steps_until_row(int64_t window) const;
  /// Of the checkpoints behind the step of a window; 0: none.
  int64_t save_kind(int64_t window) const;

  Training& training_;
  Schedule schedule_;
  int64_t number_ = 0;  ///< of the batch that begins
  RepeatedLoop windows_;
  DecidedWindows decided_;
};

}  // namespace lockstep
