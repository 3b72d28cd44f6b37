#pragma once

#include <string>
#include <vector>

#include "cli/render/style.hpp"
#include "rehearsal/rehearsal.hpp"

namespace lockstep::cli {

/// One training under a strategy, by the name that was asked for.
struct UnderStrategy {
  std::string name;
  const Rehearsal* rehearsal = nullptr;
  std::vector<std::string> notes{};  ///< what else of the training is not as it was asked for
  std::string launch{};  ///< what starts the same processes, by which settings; empty: as before
};

/// One line a strategy: throughput, step time, memory and what a rank sends and receives in a step,
/// with `verified` what was found; or why there is no prediction, in the framework's words.
std::string render_strategies(const std::vector<UnderStrategy>& rows, bool verified,
                              const Style& style);

}  // namespace lockstep::cli
