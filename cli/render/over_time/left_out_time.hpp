#pragma once

#include <cstdint>
#include <vector>

#include "model/program/journal.hpp"

namespace lockstep::cli {

/// Time that was not simulated: it repeats an earlier period.
struct LeftOutStretch {
  RepeatedRows rows;  ///< of the rank's first lane
  Time begin = rows.at;

  Time end() const { return begin + rows.period * rows.periods; }
  /// The moment of the period that is repeated, which stands for one of the stretch.
  Time repeats(Time moment) const {
    return begin - rows.first + Time((moment - begin).count() % rows.period.count());
  }
};

/// What a simulation has left out on one rank, in the order of time.
std::vector<LeftOutStretch> left_out_stretches(const Journal& journal, int32_t rank);

/// The simulated moment that stands for a moment of the run.
Time simulated_moment(const std::vector<LeftOutStretch>& stretches, Time moment);

}  // namespace lockstep::cli
