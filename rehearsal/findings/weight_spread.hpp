#pragma once

#include <optional>
#include <string>

#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// How far the weights of ranks are apart in the end, where they differ by design, for good or
/// until they are averaged again.
struct WeightSpread {
  /// The largest, over all elements, of what the ranks have most of it less what they have least.
  double apart = 0;
  std::string parameter;  ///< that has this element; empty: all ranks hold the same
};
/// Nothing: ranks are to hold the same, or no values were computed. Without servers.
std::optional<WeightSpread> weight_spread(const OneRun& run);

/// The largest difference between a number that a rank compressed and what others read of it.
/// Nothing: none was compressed, or no values were computed.
std::optional<double> compression_error(const OneRun& run);

/// The two as lines for people; empty: there is neither.
std::string weight_spread_text(const OneRun& run);

}  // namespace lockstep::cli
