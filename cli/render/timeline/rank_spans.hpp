#pragma once

#include "cli/render/timeline/span.hpp"
#include "model/program/run.hpp"

namespace lockstep::cli {

/// What one rank did, on its streams and its host threads: its operations, the phases of its
/// training, its hooks and statements, and the calls that never end. At most `room` spans and
/// memory marks; the rest is counted.
RankSpans spans_of_rank(const RunResult& run, int32_t rank, int64_t room);

}  // namespace lockstep::cli
