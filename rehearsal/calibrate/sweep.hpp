#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::cli {

/// How much is measured, and on what.
struct SweepOptions {
  int32_t ranks = 2;
  bool on_gpus = false;
  bool is_quick = false;  ///< fewer and smaller sizes, fewer repetitions
};

/// One scenario that is run for its times.
struct SweepRun {
  std::string name;  ///< for progress: "tokens, 2 ranks"
  std::string text;  ///< of the scenario
  int32_t ranks = 1;
  bool is_training = false;  ///< else communication alone
};

/// Trainings whose layers sweep sizes, with all ranks at work and with one alone, so that kernels
/// are known with and without neighbours; then every communication by size, among 2, 4, 8 .. and
/// all ranks. A training accumulates most of its batches, so that its ranks compute at the same
/// time without exchanging anything.
std::vector<SweepRun> sweep_of(const SweepOptions& options);

}  // namespace lockstep::cli
