#pragma once

#include <cstdint>

#include "model/trainer/loop/training.hpp"

namespace lockstep {

/// How many training batches, counted as Progress::batches does, have ended before a scheduler of
/// the fit raises, as OneCycleLR does behind its last step. `batches`: of an epoch. Where none
/// does: TrainerSettings::no_limit, as where no batches repeat, and of a very long fit as far as
/// was looked.
int64_t batches_until_schedule_ends(Training& training, int64_t batches);

}  // namespace lockstep
