#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/trainer/prepare/prepare.hpp"

namespace lockstep::cli {

/// A run for real, and what it ran on.
struct RealRun {
  RunResult result;
  std::vector<std::string> basis;  ///< "LibTorch 2.11.0, Gloo"; "Intel Xeon", "1 host"
  /// Steady-clock time of the host when the first collective finished on some rank.
  std::optional<int64_t> first_collective_clock_ns{};
};

/// A rank found that this machine lacks what it needs.
class CapabilityMissing : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Runs a prepared program for real. May throw RealRunFailed, CapabilityMissing or
/// TimeLimitReached.
using RealWorld = std::function<RealRun(const Preparation&, const ProgramOfRank&)>;

/// The real run could not be made, for a reason that is not in the scenario.
class RealRunFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A file that a rank left is not as the rank wrote it.
class DamagedFile final : public RealRunFailed {
 public:
  using RealRunFailed::RealRunFailed;
};

}  // namespace lockstep::cli
