#pragma once

#include <vector>

#include "properties/diagnosis/divergence.hpp"
#include "properties/finding.hpp"

namespace lockstep {

/// All members of a communicator make the same calls with the same arguments in the same order
/// (LS101..LS105, LS109). One finding a defect: differences that follow from an earlier one are
/// reported under its consequences.
std::vector<Finding> matched_collectives(const RunResult& run);

/// The finding that describes one divergence.
Finding finding_of(const RunResult& run, const Divergence& divergence);

/// Whether an operation of this rank never came to a good end.
bool never_completed(const Journal& journal, int32_t rank, Ticket ticket);

/// "waits" for one rank, "wait" for several.
std::string verb(const RankSet& ranks, std::string_view plural);

}  // namespace lockstep
