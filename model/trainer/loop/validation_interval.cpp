#include "model/trainer/loop/validation_interval.hpp"

#include <fmt/core.h>

#include "model/program/rank.hpp"

namespace lockstep {

// Lightning refuses what would never validate, once it knows how many batches there are.
void check_validation_interval(const TrainerSettings& settings, int64_t available, bool iterable) {
  const TrainerSettings::Limit& interval = settings.val_check_interval;
  const bool in_batches = interval.batches != TrainerSettings::no_limit;
  if (in_batches && interval.batches > available && settings.check_val_every_n_epoch != 0 &&
      settings.limit_validation.allows_any() && !iterable) {
    throw ProgramException(
        interval.site,
        fmt::format("`val_check_interval` ({}) must be less than or equal to the number "
                    "of the training batches ({})",
                    interval.batches, available));
  }
  if (!in_batches && interval.part != 1 && iterable) {
    throw ProgramException(interval.site,
                           "with an IterableDataset `val_check_interval` must be 1.0 or an int");
  }
}

}  // namespace lockstep
