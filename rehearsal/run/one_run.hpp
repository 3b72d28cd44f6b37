#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/journal/temporary_store.hpp"
#include "model/trainer/prepare/prepare.hpp"
#include "rehearsal/launch/device_choice.hpp"
#include "rehearsal/launch/real_run.hpp"
#include "rehearsal/run/calibrated.hpp"
#include "rehearsal/run/machine.hpp"
#include "rehearsal/run/schedule.hpp"
#include "rehearsal/run/stop.hpp"
#include "rehearsal/run/weight_spreads.hpp"
#include "rehearsal/world.hpp"

namespace lockstep::cli {

class Progress;

/// How a scenario is to be run once.
struct RunRequest {
  World world = World::simulated;
  bool lists = false;  ///< keep what operations read and write, for the search for races
  Schedule schedule{};
  const Deadline* deadline = nullptr;              ///< outlives the run; null: none
  std::chrono::milliseconds hang_after{10'000};    ///< of World::processes
  std::chrono::milliseconds join_timeout{60'000};  ///< likewise
  std::optional<int32_t> ranks_max{};              ///< likewise: more are not started
  /// With World::processes, replaces the launch of rank programs. Outlives the run.
  const RealWorld* real = nullptr;
  const Journal* replay = nullptr;  ///< simulated: choices to repeat; outlives the run
  DeviceRequest device{};           ///< of World::processes
  /// Simulated: the operations of World::processes, which computes layers of every kind.
  bool repeats_processes = false;
  Attempt attempt{};         ///< of an elastic launcher
  int32_t stands_for = 1;    ///< one device, in place of so many ranks
  bool runs_classes = true;  ///< simulated: one rank may run for all that do the same
  std::optional<int32_t> simulated_ranks_max{};  ///< simulated: with more of these nothing runs
  /// Simulated: whether every rank has enough memory is asked, and what each holds. Times are not.
  bool memory_alone = false;
  bool rounds_otherwise = false;           ///< simulated: sim::SimulationOptions
  std::optional<KeptSteps> keeps_steps{};  ///< simulated: of these none is left out
  bool folds_links = true;                 ///< simulated: those of nodes that are alike may be one
  /// The one device evaluates every sample as often as the ranks do that it stands for.
  bool joins_evaluation = false;
  /// The one device clips so where the program asks for nothing else: as the strategy of those
  /// ranks is configured, which it does not read.
  std::optional<GradientClipping> clips_as{};
  /// The one device has a GradScaler for these, which it stands for.
  LossScale::Others scales_for{};
  bool scales_no_loss = false;
  bool gathers_rows = false;    ///< the one device: as the strategy of those ranks does
  bool groups_experts = false;  ///< the one device: as the strategy of those ranks does
  Arithmetic arithmetic = Arithmetic::always;                       ///< simulated
  int64_t journal_bytes_max = JournalOptions().resident_bytes_max;  ///< in memory; the rest spills
  sim::RangeEnd end = sim::RangeEnd::nominal;  ///< simulated, with a calibration: of its range
  /// Simulated: gets the steps of rank 0, and what a run of many ranks will take; outlives the run.
  Progress* progress = nullptr;
};

/// One run of one scenario, with what it stood on.
struct OneRun {
  World world = World::simulated;
  Attempt attempt{};  ///< that was asked for
  Preparation preparation;
  Machine machine;
  std::vector<Problem> problems;  ///< of preparation, machine and faults
  std::vector<Problem> unstruck;  ///< notes on faults that took no effect; also among `problems`
  std::vector<std::string> basis;
  std::optional<CalibrationUse> calibration;  ///< simulated: what its times are based on
  bool ran = false;
  bool folds_links = true;  ///< such runs may; where false it was found that they may not
  RunResult result;         ///< with a journal that knows all sites
  std::shared_ptr<TemporaryStore> store;             ///< where the journal spills to
  std::vector<FreeChoice> free_choices;              ///< that the schedule's list decides
  std::vector<uint32_t> source_alternatives;         ///< by turn
  std::string undecided;                             ///< why there is no answer: a limit was hit
  std::string world_failure;                         ///< the real world could not be made
  bool world_is_damaged = false;                     ///< as a file that it left is
  std::optional<int64_t> first_collective_clock_ns;  ///< as in RealRun
  /// Simulated, with values, where replicas differ by design; else empty.
  WeightSpreads weight_spreads;
};

/// The most ranks that run as threads of one process.
inline constexpr int32_t thread_ranks_max = 8;
/// The most ranks that are started as processes of one machine, by its cores: a rank that waits for
/// its turn too long would count as hung.
inline constexpr int32_t process_ranks_per_core = 8;
bool has_thread_world();

OneRun run_once(const Scenario& scenario, const RunRequest& request);

/// Every strategy that this program knows.
const StrategyRegistry& strategies();

}  // namespace lockstep::cli
