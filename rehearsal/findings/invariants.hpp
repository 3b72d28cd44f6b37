#pragma once

#include <optional>
#include <vector>

#include "properties/finding.hpp"
#include "properties/invariants/equals_single_device.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// Findings of one run: communication, memory, statements, raised exceptions, samples and
/// replicas. One defect, one finding; sorted.
std::vector<Finding> findings_of(const OneRun& run, World world);

/// Findings for settings that the framework refuses or silently changes (LS5xx).
std::vector<Finding> findings_of(const std::vector<Problem>& problems, Sites& sites);

/// Of the network, in definition order; empty: there is none.
std::vector<std::string> parameter_names(const OneRun& run);
/// The final parameters of all ranks, by name.
std::vector<NamedValues> parameters_of(const OneRun& run);

/// How near two computations of this run's final parameters are, whoever computes: bit for bit
/// where all values are integers.
EqualityRule equality_rule(const OneRun& run);
/// How far, relatively, values of the network may be from those of one device; 0 where it computes
/// in 32 bits or more, whose roundings are counted by the sums.
double network_error(const OneRun& run);

}  // namespace lockstep::cli
