#pragma once

#include <utility>
#include <vector>

#include "model/core/units.hpp"

namespace lockstep::cli {

/// How long at least one of the intervals [begin, end) lasts.
Time length_of_union(std::vector<std::pair<Time, Time>> intervals);

}  // namespace lockstep::cli
