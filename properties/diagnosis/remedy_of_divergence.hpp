#pragma once

#include <string>
#include <vector>

#include "properties/diagnosis/divergence.hpp"

namespace lockstep {

/// What lets the members of a communicator do the same; `by_signal`: the handler of a signal
/// separated them.
std::vector<std::string> remedy_of_divergence(const RunResult& run, const Divergence& d,
                                              bool by_signal);

}  // namespace lockstep
