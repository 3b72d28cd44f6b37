#pragma once

#include "model/trainer/logging/run_log.hpp"
#include "model/user_program/program_settings.hpp"

namespace lockstep {

/// A statement of a rank begins. Throws StatementLimit where the rank has run too many, and
/// StopAsked where the run is to be given up.
void count_statement(const ProgramSettings& settings, RankLog& log);

}  // namespace lockstep
