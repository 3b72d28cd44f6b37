#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// The subject of a remedy, as far as it is known.
struct RemedyContext {
  std::string operation;    ///< "all_gather"
  std::string condition;    ///< of the branch that separated the ranks, or empty
  bool by_signal = false;   ///< the handler of a signal separated them
  bool stops = false;       ///< the ranks left a training loop apart, by `should_stop`
  std::string statement{};  ///< of the user, in which the strategy makes the operation, or empty
  /// Statements that ranks run differently, by the condition; the strategy makes the operation.
  std::vector<std::string> parted{};
  /// The condition says that a rank may step, so that all must; else that one must not.
  bool steps_if_true = false;
  std::string batches{};  ///< "training": a loop over such batches separated the ranks
};

/// The lines that fix a defect of this code; a statement of a scenario where one helps.
std::vector<std::string> remedy_for(std::string_view code, const RemedyContext& context = {});

/// A `return` by which some ranks leave a hook, and the branch around it that parts the ranks.
struct GuardedReturn {
  std::string condition;
  bool leaves_if_true = true;  ///< else where the condition does not hold
  bool is_refused = false;     ///< the trainer raises where all ranks leave, too
};
std::vector<std::string> remedy_for_return(const GuardedReturn& leaves);

}  // namespace lockstep
