#pragma once

#include "model/strategy/strategy.hpp"
#include "model/trainer/loop/training_program.hpp"
#include "model/user_program/interpreter.hpp"

namespace lockstep {

/// What a training on one rank has before any stage begins. All of it outlives the parts of the
/// trainer.
struct TrainingContext {
  Rank& rank;
  const TrainingProgram& program;
  RankLog& log;
  Strategy& strategy;
  Interpreter& interpreter;
};

}  // namespace lockstep
