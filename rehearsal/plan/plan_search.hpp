#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "io/sweep/sweep_row.hpp"
#include "rehearsal/plan/layouts.hpp"

namespace lockstep::cli {

/// A layout, and what a simulation of some steps gave.
struct TriedLayout {
  Layout layout;
  SweepRow row;
};

/// What became of all layouts.
struct PlanResult {
  std::vector<TriedLayout> best;  ///< that fit, the fastest first
  int64_t layouts = 0;
  int64_t too_large = 0;               ///< by their model states alone
  int64_t out_of_memory = 0;           ///< in the simulation
  int64_t passed_over = 0;             ///< as larger micro-batches fit
  int64_t failed = 0;                  ///< refused, or not modelled
  int64_t left = 0;                    ///< not tried, as the time was up
  std::vector<TriedLayout> refused{};  ///< of `failed`, one for each reason
};

/// Simulates some layouts, given as indices; a row for each, nothing where the time was up before.
using RunWave =
    std::function<std::vector<std::optional<SweepRow>>(const std::vector<size_t>& layouts)>;

/// Simulates layouts in waves of shrinking micro-batches. Where two of a family fit, smaller ones
/// are not tried: they take no more memory, and seldom less time.
PlanResult search_plan(const LayoutTask& task, const std::vector<Layout>& layouts,
                       const RunWave& run_wave);

}  // namespace lockstep::cli
