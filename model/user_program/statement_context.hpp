#pragma once

#include "model/trainer/logging/run_log.hpp"
#include "model/user_program/program_settings.hpp"
#include "model/user_program/trainer_scope.hpp"

namespace lockstep {

/// What surrounds the statements of one rank. All of it outlives whoever runs them.
struct StatementContext {
  Rank& rank;
  const ProgramSettings& settings;
  RankLog& log;
  TrainerScope* trainer;  ///< null for a bare program
};

}  // namespace lockstep
