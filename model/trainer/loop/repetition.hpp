#pragma once

#include <string>

namespace lockstep {

/// Whether batches and epochs of a training do the same again, as far as the scenario says: no
/// statement depends on what differs between them.
struct Repetition {
  bool batches = false;
  bool epochs = false;  ///< then batches do, too
  /// What is logged is the same in every batch, or a placeholder.
  bool logs = false;
  std::string why_not;  ///< where one of them does not: "`if` (line 12) depends on batch_idx"
};

}  // namespace lockstep
