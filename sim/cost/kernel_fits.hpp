#pragma once

#include <span>
#include <string_view>

#include "sim/cost/kernel_constants.hpp"

namespace lockstep::sim {

/// Constants in the order of KernelTerm, as bench/kernel_fit.cpp printed them.
struct KernelFitEntry {
  std::string_view without;  ///< a file of data/throughput that took no part; empty: all did
  std::array<double, kernel_term_count> values{};
  int rows = 0;  ///< that took part
};
/// The fit to all rows first; empty: nothing was fitted.
std::span<const KernelFitEntry> kernel_fits();

}  // namespace lockstep::sim
