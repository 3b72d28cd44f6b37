#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "model/network/network.hpp"

namespace lockstep::sim {

/// How far measured times are from predicted ones of rows that took no part in the fit.
struct KernelRange {
  std::string_view software;  ///< a profile; empty: all
  bool convolves = false;     ///< networks of which most FLOPs are convolutions
  int rows = 0;
  double low = 1;  ///< 5 and 95 % of measured / predicted time
  double high = 1;
};
/// Of each software and kind of network with enough rows, and of each kind with all software.
std::span<const KernelRange> kernel_ranges();
/// Of this software, or where that has too few rows of all; nothing was fitted: nothing.
std::optional<KernelRange> kernel_range(std::string_view software, bool convolves);
/// Whether most FLOPs of a forward are convolutions.
bool convolves(const Network& network);

}  // namespace lockstep::sim
