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
  int64_t too_much_kept = 0;           ///< with the activations that a rank keeps at least
  int64_t out_of_memory = 0;           ///< in the simulation
  int64_t passed_over = 0;             ///< as larger micro-batches fit
  int64_t too_slow = 0;                ///< by the least time that they take
  int64_t failed = 0;                  ///< refused, or not modelled
  int64_t left = 0;                    ///< not tried, as the time was up
  std::vector<TriedLayout> refused{};  ///< of `failed`, one for each reason
};

/// Simulates some layouts, given as indices; a row for each, nothing where the time was up before.
using RunWave =
    std::function<std::vector<std::optional<SweepRow>>(const std::vector<size_t>& layouts)>;

struct SearchOptions {
  int64_t top = 10;    ///< the fastest that are asked for
  size_t at_once = 8;  ///< layouts of one call of RunWave
};

/// Simulates layouts that cost little to simulate before others, and of these those whose least
/// time is short, until no other can be among the fastest `top`. Where two of a family fit, smaller
/// micro-batches are not tried: they take no more memory, and seldom less time. Where one does not
/// fit, larger ones of its family are not tried.
PlanResult search_plan(const LayoutTask& task, const std::vector<Layout>& layouts,
                       const SearchOptions& options, const RunWave& run_wave);

}  // namespace lockstep::cli
