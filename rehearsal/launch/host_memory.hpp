#pragma once

#include <optional>
#include <string>

#include "model/core/units.hpp"

namespace lockstep::cli {

/// Memory that a process may still use on this host: MemAvailable of /proc/meminfo, or less where a
/// control group limits it. Nothing where neither says.
std::optional<Bytes> available_host_memory();

/// From the text of /proc/meminfo.
std::optional<Bytes> available_memory_in(const std::string& meminfo);

/// Private memory of one rank program before it has a buffer: 63 MiB with
/// LibTorch 2.11.0 (Private_Dirty of /proc/PID/smaps_rollup while it waits for the other rank).
inline constexpr Bytes rank_program_memory{int64_t{64} << 20};

}  // namespace lockstep::cli
