#pragma once

#include <cstdint>
#include <vector>

#include "model/strategy/plan.hpp"

namespace lockstep {

/// A forward that a backward goes through, and where it enters the network.
struct BackwardPass {
  int64_t forward = 0;                    ///< ForwardHistory::last() of it
  double loss_factor = 1;                 ///< d(what is differentiated) / d(its loss)
  std::vector<double> output_gradient{};  ///< the same by each element of its output, if not empty
  bool is_output = false;                 ///< it enters at the output; else at the loss

  /// `options` with these.
  StepOptions applied_to(const StepOptions& options) const;
};

/// Which gradients a layer's backward computes: the halves may come apart, weights after the input.
enum class BackwardHalf : uint8_t { both, input, weights };

}  // namespace lockstep
