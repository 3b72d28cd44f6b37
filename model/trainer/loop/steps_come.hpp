#pragma once

#include <cstdint>

#include "model/trainer/loop/training_program.hpp"

namespace lockstep {

/// Fails at `max_steps` where it alone ends the training and no epoch of so many batches has a step
/// that the trainer counts.
void check_steps_come(const TrainingProgram& program, int64_t batches);

}  // namespace lockstep
