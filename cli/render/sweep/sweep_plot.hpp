#pragma once

#include <string>
#include <vector>

#include "cli/render/sweep/sweep_table.hpp"

namespace lockstep::cli {

/// What a plot shows: a result or key over a key of numbers, a line for each combination of the
/// other keys.
struct PlotAxes {
  std::string x;
  std::string y;
};

/// Throws SweepError where `x` is no key of the sweep, or some of its values is no number.
void check_plot_key(const std::string& x, const std::vector<std::string>& keys,
                    const std::vector<std::string>& values_of_x);

/// An SVG picture. Cases that have no such result are marked at the foot. Throws SweepError where
/// nothing can be shown, or too many lines.
std::string sweep_plot(const ShownSweep& sweep, const PlotAxes& axes);

}  // namespace lockstep::cli
