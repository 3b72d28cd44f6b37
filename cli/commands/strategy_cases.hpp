#pragma once

#include <string>
#include <vector>

#include "cli/commands/commands.hpp"
#include "rehearsal/jobs.hpp"

namespace lockstep::cli {

/// `run` or `verify` of one case under several strategies, as one table. `names`: as
/// `trainer.strategy` takes them, separated by commas; `all`: one of each kind.
Answer compare_strategies(const Request& request, const RehearseRequest& how, Judges judges,
                          const Style& style);

}  // namespace lockstep::cli
