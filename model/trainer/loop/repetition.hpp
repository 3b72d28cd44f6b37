#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/expression/expression.hpp"

namespace lockstep {

/// Optimizer steps of a fit, numbered from 0, that are simulated though they repeat others.
struct KeptSteps {
  int64_t first = 0;
  int64_t last = 0;  ///< the last of them
};

/// Whether batches and epochs of a training do the same again, as far as the scenario says: no
/// statement depends on what differs between them, but for counters.
struct Repetition {
  /// A strategy that cuts a batch into parts may do the same with each.
  bool micro_batches = false;
  bool batches = false;
  bool epochs = false;  ///< then batches do, too
  /// What is logged is the same in every batch, or a placeholder.
  bool logs = false;
  /// Ranks take as many batches in each epoch, so that they are always in the same one.
  bool ranks_are_in_step = true;
  /// Where they do not, a batch does the same in whichever epoch a rank is.
  bool epochs_matter = false;
  std::string why_not;  ///< where one of them does not: "`if` (line 12) depends on loss"
  /// What decides by counters of the loops (batch_idx, epoch, global_step) and by what a rank is
  /// called: batches for which all these have the same values do the same.
  std::vector<Expression> counted;
  bool ranks_decide_apart = false;  ///< some of it is not the same on every rank
  /// Of ranks that decide the same one each; empty: all of the world are asked.
  std::vector<int32_t> deciding_ranks{};
  /// Names that these are made of, where the program binds them.
  std::map<std::string, Expression, std::less<>> bound;
  std::optional<KeptSteps> kept{};
};

}  // namespace lockstep
