#pragma once

#include <memory>

#include "model/program/run.hpp"
#include "model/scenario/scenario.hpp"
#include "model/trainer/logging/run_log.hpp"
#include "model/user_program/program_settings.hpp"

namespace lockstep {

/// Data that the ranks of a bare program share; read-only except the log.
struct BareProgram {
  std::shared_ptr<const Scenario> scenario;
  ProgramSettings settings;
  std::shared_ptr<RunLog> log;
};

/// `main` of a scenario without a trainer. At its end the host waits for all that was put on the
/// device, as destroy_process_group does.
ProgramOfRank bare_program(std::shared_ptr<const BareProgram> program);

}  // namespace lockstep
