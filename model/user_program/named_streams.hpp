#pragma once

#include <string>

#include "model/scenario/statement.hpp"
#include "model/user_program/program_settings.hpp"

namespace lockstep {

/// "comm" and "compute", else the scenario's own stream of that name.
StreamId stream_named(const ProgramSettings& settings, const std::string& name);

/// The stream that a statement names, or `otherwise`.
StreamId stream_of(const ProgramSettings& settings, const Statement& statement, StreamId otherwise);

}  // namespace lockstep
