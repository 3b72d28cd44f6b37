#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "properties/finding.hpp"
#include "rehearsal/measure/held_tensors.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// One point in which a real run and its simulation are compared with each other.
struct Point {
  std::string name;  ///< "outcome", "calls", "values", "memory"
  bool equal = true;
  std::string extent{};                    ///< "312", "bit for bit": behind the word equal
  std::vector<std::string> differences{};  ///< the first few, where it is not
  std::string not_compared{};              ///< why; empty: it was
};

/// A real run against the simulation of the same scenario, whose free choices are the real ones.
struct Comparison {
  std::vector<Point> points;
  std::optional<HeldTensors> tensors;  ///< of the real run; part of the point "memory"
  std::optional<Time> real_step;
  /// From the start of the command; of `exec` on one host, where a collective was done.
  std::optional<Time> time_to_first_collective;
  std::optional<Time> predicted_step;
  std::optional<Time> predicted_low;  ///< with a calibration
  std::optional<Time> predicted_high;
  std::string calibration;    ///< its file; empty: there is none
  std::string predicted_for;  ///< "8 x A100 SXM4 80GB on 1 node"
  std::string not_compared;   ///< why there is no simulation to compare with; empty: there is
  bool equal() const;
};

/// Simulates the scenario of `real` with its choices, and compares. Calls: the journals' rows, by
/// rank and lane, in host order. Values: final parameters and logged metrics; bit for bit, else
/// within the bound that rounding explains (rounding_bound), which is stated. Memory: peaks by
/// device of what strategy and trainer allocate, to the byte; what the framework's tensors held,
/// within the allowance of HeldTensors. Outcome: how each rank ended, and the codes, sites and
/// ranks of findings. With `skip_values` the simulation repeats operations, and computes nothing.
Comparison compare(const Scenario& scenario, const OneRun& real,
                   const std::vector<Finding>& real_findings, bool skip_values,
                   const Deadline* deadline);

}  // namespace lockstep::cli
