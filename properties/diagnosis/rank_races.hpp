#pragma once

#include <vector>

#include "model/program/journal.hpp"
#include "properties/diagnosis/access_history.hpp"

namespace lockstep {

/// All races on one rank, in the order in which its lanes came to them.
std::vector<Race> races_of(const Journal& journal, int32_t rank);

}  // namespace lockstep
