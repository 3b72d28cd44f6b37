#pragma once

#include "rehearsal/results.hpp"

namespace lockstep::cli {

/// Where [begin, end) of this rank went.
Breakdown breakdown_of(const Journal& journal, int32_t rank, Time begin, Time end);

}  // namespace lockstep::cli
