#pragma once

#include "model/program/run.hpp"
#include "sim/simulation_options.hpp"

namespace lockstep::sim {

/// Runs one program per rank in the simulated world, to the end or until nothing can advance.
/// Deterministic: the same arguments give the same result, byte for byte.
RunResult simulate(const RunOptions& options, const SimulationOptions& simulation,
                   const ProgramOfRank& program);

}  // namespace lockstep::sim
