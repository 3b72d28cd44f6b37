#pragma once

#include <string>

namespace lockstep {

/// That a rank has a placeholder in place of the loss, which another rank computes and keeps.
struct MissingLoss {
  bool of_training = false;
  bool of_evaluation = false;
  std::string cause;   ///< a sentence
  std::string remedy;  ///< what to do
  bool operator==(const MissingLoss&) const = default;
};

}  // namespace lockstep
