#pragma once

#include <cstdint>

#include "model/trainer/loop/training_program.hpp"

namespace lockstep {

/// Raises ProgramException where Lightning refuses `val_check_interval`. `available`: training
/// batches of an epoch; `iterable`: they come from an IterableDataset.
void check_validation_interval(const TrainerSettings& settings, int64_t available, bool iterable);

}  // namespace lockstep
