#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "model/core/instant.hpp"
#include "sim/cost.hpp"
#include "sim/fault_horizon.hpp"
#include "sim/step_observer.hpp"

namespace lockstep::sim {

/// A slow link: its effect, start and duration. Of a step or an epoch: from when the first rank's
/// host begins it. Latency is added to transfers that start while it lasts.
struct LinkFault {
  LinkIndex link = 0;
  Instant at{};
  Time duration = Time::max();
  double bandwidth =
      1;               ///< the remaining share, as a fraction > 0; of several faults, their product
  Time latency{};      ///< added
  int32_t number = 0;  ///< the caller's own, for LinkFaults::struck
};

struct SimulationOptions {
  const ComputeCost* compute = nullptr;        ///< required; outlives the run
  CommunicationCost* communication = nullptr;  ///< required; outlives the run
  Time launch_overhead{};                      ///< of each submission, on the host
  double contention = 0;  ///< part of the time in which a rank communicates beside its kernels that
                          ///< these lose. The next kernel takes that much longer.
  std::optional<uint64_t> tie_seed;  ///< draw the order of what happens at the same time
  Time drawn_before = Time::max();   ///< only of what happens earlier
  /// Which of several waiting sends an any-source receive takes, by turn; empty: the first come.
  std::vector<uint32_t> any_source_choices;
  /// Defers any-source receives until the world is otherwise idle, so that every candidate sender
  /// is present.
  bool any_source_last = false;
  /// Filled in for an explorer, by turn: how many ways there were to go on, first those of taking a
  /// waiting send. A last 0: the run was left, because its choices lead to an order that others
  /// lead to as well. May be null.
  std::vector<uint32_t>* any_source_alternatives = nullptr;
  std::vector<std::pair<int32_t, Time>> lost_ranks;
  std::vector<LinkFault> link_faults;
  std::vector<TimedFault> faults_of_costs;  ///< when `compute` changes
  PositionObserver* observer = nullptr;     ///< observes the position of ranks; may be null
  StepObserver* steps = nullptr;  ///< likewise what optimizer steps change; outlives the run
  /// Whether periods of loops are left out once the world has come back to the same state.
  bool leaves_out_periods = false;
  /// What ranks hold is asked for, not when: the run ends with the first rank that is out of
  /// memory, the others are left waiting, and ranks that do the same may share links unequally.
  bool memory_alone = false;
  /// Moves each number that an optimizer writes by one rounding, up or down: how far rounding
  /// carries in a training is what comes of it.
  bool rounds_otherwise = false;
  /// Asked now and then whether to give up; null: never. Then ranks are left waiting.
  std::function<bool()> stop_asked{};
};

/// A world was to be given up before it was built.
class WorldGivenUp final : public std::runtime_error {
 public:
  WorldGivenUp() : std::runtime_error("the world was given up before it was built") {}
};

}  // namespace lockstep::sim
