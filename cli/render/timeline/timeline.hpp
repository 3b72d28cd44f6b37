#pragma once

#include <string>

#include "rehearsal/rehearsal.hpp"

namespace lockstep::cli {

/// Writes a run as Chrome trace JSON (ui.perfetto.dev, chrome://tracing): one process per rank, a
/// track for each stream and host thread, memory by purpose as counters, arrows from sends to
/// receives. Ranks and events are bounded, and so is what is held of a rank at once. Returns what
/// was left out, as sentences for the user; empty: nothing. Throws OutputError.
std::string write_timeline(const Rehearsal& rehearsal, const std::string& path);

}  // namespace lockstep::cli
