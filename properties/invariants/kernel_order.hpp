#pragma once

#include <string>
#include <vector>

#include "model/program/run.hpp"
#include "properties/finding.hpp"

namespace lockstep {

/// LS106 as a warning, for NCCL: collectives of several groups that completed on streams of their
/// own, though no one order of them fits all ranks. Each NCCL kernel stays on its GPU until its
/// peers have come, so somewhere two of them were on one GPU at once; whether both find room there
/// depends on the GPU and on NCCL. `nccl` is the version, or empty where it is not known.
std::vector<Finding> no_kernel_order_hazard(const RunResult& run, const std::string& nccl);

}  // namespace lockstep
