#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/program/run.hpp"
#include "properties/finding.hpp"

namespace lockstep {

/// The communication library; it decides the symptoms of a hang.
enum class Backend : uint8_t { nccl, gloo, mpi, xla };
std::string_view name_of(Backend backend);

/// How long a collective may take before the backend gives up: NCCL 10 min, Gloo 30 min (PyTorch,
/// torch/distributed/constants.py); MPI waits without limit (Time::max).
Time default_timeout(Backend backend);

struct DiagnosisOptions {
  Backend backend = Backend::nccl;
  std::string world;  ///< where it was seen, put before `when`: "simulated"; empty = nothing
  Time timeout{};     ///< of the world; 0 = default_timeout(backend)
  Time timeout_of_new_groups{};             ///< 0 = default_timeout(backend)
  std::map<SiteId, Time> given_timeouts{};  ///< of groups, by the place of their new_group
  /// The effect of a failure of these ranks before any time limit: the launcher may
  /// end them. Empty: nothing.
  RankSet failed{};
  std::string after_failure{};
  std::string nccl{};       ///< its version; empty: not known
  bool negotiated = false;  ///< by Horovod, which has no time limit, whatever carries its data
};

/// Finds communication defects in one run of any world: matched_collectives,
/// matched_parts, no_deadlock, no_buffering_hazard, no_race, no_slow_participant and memory_fits,
/// with consequences reported under their cause, so that one defect is one finding: a rank that
/// runs out of memory while others wait for it is their LS101, which then says what the memory was
/// used for. Sorted: errors first.
std::vector<Finding> diagnose(const RunResult& run, const DiagnosisOptions& options = {});

}  // namespace lockstep
