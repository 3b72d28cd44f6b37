#pragma once

#include <memory>
#include <vector>

#include "rehearsal/progress.hpp"
#include "rehearsal/rehearsal.hpp"

namespace lockstep::cli {

/// How far a rehearsal goes.
struct RehearseRequest {
  World world = World::simulated;
  bool explore = true;         ///< all orders, world sizes and one device; else one run
  bool find_smallest = false;  ///< of an error, the smallest settings that show it
  bool first_values = true;    ///< where not all values can be judged, those of the first steps are
  bool advise = false;         ///< rehearse variants that may be better
  std::shared_ptr<const Deadline> deadline{};
  std::chrono::milliseconds hang_after{10'000};    ///< of World::processes
  std::chrono::milliseconds join_timeout{60'000};  ///< likewise
  std::optional<int32_t> ranks_max{};              ///< likewise: more are not started
  const RealWorld* real = nullptr;                 ///< of World::processes; null: launch them
  std::shared_ptr<Progress> progress{};
  int64_t journal_bytes_max = RunRequest().journal_bytes_max;  ///< of one run
  DeviceRequest device{};                                      ///< of World::processes
  std::optional<KeptSteps> keeps_steps{};  ///< simulated: of these none is left out
  int threads = 1;  ///< that may work for one case; the result does not depend on it
};

/// Loads nothing itself: `scenario` is one of what `source` loads to. `source` is read again for
/// other world sizes and smaller variants.
Rehearsal rehearse(const CaseSource& source, std::shared_ptr<const Scenario> scenario,
                   std::shared_ptr<const Sources> sources, const RehearseRequest& request);

}  // namespace lockstep::cli
