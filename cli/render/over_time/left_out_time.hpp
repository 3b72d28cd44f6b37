#pragma once

#include <cstdint>
#include <vector>

#include "model/program/journal.hpp"

namespace lockstep::cli {

/// Time that was not simulated: it repeats the period that ends where it begins.
struct LeftOutStretch {
  Time begin{};
  Time period{};
  int64_t periods = 0;
  int64_t first_row = 0;    ///< of the period that is repeated, on lane 0
  int64_t end_row = 0;      ///< behind its last one
  int64_t first_inner = 0;  ///< of the stretches that lie within that period

  Time end() const { return begin + period * periods; }
};

/// What a simulation has left out on one rank, in the order of time. `total`: of the whole run.
std::vector<LeftOutStretch> left_out_stretches(const Journal& journal, int32_t rank, Time total);

/// The simulated moment that stands for a moment of the run.
Time simulated_moment(const std::vector<LeftOutStretch>& stretches, Time moment);

}  // namespace lockstep::cli
