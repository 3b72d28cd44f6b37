#pragma once

#include <optional>

namespace lockstep {

/// What torch's schedulers read and set of an optimizer's parameter group. They keep some of it
/// there, so that the last one that was made decides for all.
struct ParameterGroup {
  double rate = 0;                       ///< lr
  std::optional<double> initial_rate{};  ///< initial_lr; none: no scheduler has been made
  double momentum = 0;                   ///< momentum, or the first of betas

  // OneCycleLR's.
  double highest_rate = 0;      ///< max_lr
  double lowest_rate = 0;       ///< min_lr
  double highest_momentum = 0;  ///< max_momentum
  double lowest_momentum = 0;   ///< base_momentum
};

}  // namespace lockstep
