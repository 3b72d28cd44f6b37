#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/program/run.hpp"
#include "properties/finding.hpp"

namespace lockstep {

/// What carries the communication; it decides what a user sees of a hang.
enum class Backend : uint8_t { nccl, gloo, mpi };
std::string_view name_of(Backend backend);

/// How long a collective may take before the backend gives up: NCCL 10 min, Gloo 30 min (PyTorch,
/// torch/distributed/constants.py); MPI waits without limit (Time::max).
Time default_timeout(Backend backend);

struct DiagnosisOptions {
  Backend backend = Backend::nccl;
  std::string world;  ///< where it was seen, put before `when`: "simulated"; empty = nothing
  Time timeout{};     ///< of a group; 0 = default_timeout(backend)
  /// What comes of a failure of these ranks before any time limit: who started the processes may
  /// end them. Empty: nothing.
  RankSet failed{};
  std::string after_failure{};
  std::string nccl{};  ///< its version; empty: not known
};

/// What is wrong with the communication of one run, from whatever world: matched_collectives,
/// matched_parts, no_deadlock, no_buffering_hazard, no_race, no_slow_participant and memory_fits,
/// with consequences told under their cause, so that one defect is one finding: a rank that runs
/// out of memory while others wait for it is their LS101, which then tells what the memory was used
/// for. Sorted: errors first.
std::vector<Finding> diagnose(const RunResult& run, const DiagnosisOptions& options = {});

}  // namespace lockstep
