#pragma once

#include <string>
#include <vector>

#include "cli/render/report/drawings.hpp"
#include "rehearsal/rehearsal.hpp"

namespace lockstep::cli {

/// What one layer of rank 0's model takes in the span that is drawn.
struct LayerTime {
  std::string name;
  std::string kind;
  int64_t parameters = 0;
  Bytes kept{};    ///< for one sample, from its forward to its backward
  Time forward{};  ///< of all micro-batches, recomputed ones too
  Time backward{};
};

/// In forward order, the loss last; without layers that take no time. Empty: rank 0 runs none.
std::vector<LayerTime> layer_times(const OneRun& run, const DrawnSpan& span);

}  // namespace lockstep::cli
