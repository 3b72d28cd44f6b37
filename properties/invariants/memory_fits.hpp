#pragma once

#include <vector>

#include "model/program/run.hpp"
#include "properties/finding.hpp"

namespace lockstep {

/// No rank runs out of device memory (LS401). One finding: ranks that ran out at the same place are
/// reported together, with what the memory was used for.
std::vector<Finding> memory_fits(const RunResult& run);

/// "parameter 5.8 GiB, gradient 5.8 GiB": what is held, largest first, zeros left out.
std::string memory_text(const MemoryByPurpose& bytes);

}  // namespace lockstep
