#pragma once

#include <optional>
#include <vector>

#include "cli/one_run.hpp"
#include "properties/equals_single_device.hpp"
#include "properties/finding.hpp"

namespace lockstep::cli {

/// What is wrong with one run: communication, memory, statements, raised exceptions, samples and
/// replicas. One defect, one finding; sorted.
std::vector<Finding> findings_of(const OneRun& run, World world);

/// What the framework refuses or takes for something else (LS5xx), as findings.
std::vector<Finding> findings_of(const std::vector<Problem>& problems, Sites& sites);

/// What the run computed against one device that saw the same samples (LS306).
std::vector<Finding> single_device_findings(const OneRun& run, const OneRun& single);

/// The final parameters of all ranks, by name.
std::vector<NamedValues> parameters_of(const OneRun& run);

/// How near two computations of this run's final parameters are, whoever computes: bit for bit
/// where all values are integers.
EqualityRule equality_rule(const OneRun& run);

}  // namespace lockstep::cli
