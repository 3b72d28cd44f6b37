#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/network/optimizer/optimizer_rule.hpp"

namespace lockstep {

/// What the kernel optimizer_step is given beside tensors.
struct UpdateCall {
  OptimizerSettings settings;
  UpdateMoment moment;
  int64_t rows = 0;  ///< of each matrix that the last two dimensions make; 0: there is one at most
  int64_t columns = 1;
  /// Of a tensor of which each rank holds a part: so many squared norms of all of it are read
  /// behind the gradient, in the order in which the update asks for norms.
  int64_t shared_norms = 0;
  enum class Use : uint8_t {
    whole,    ///< a tensor is updated
    part,     ///< the same of a part of one; how far errors take it is what one device says
    measure,  ///< nothing is: what is written is the square of the part's own norm, the first that
              ///< is not among these. The parameter and its state are read behind them
  };
  Use use = Use::whole;
};

/// As scalars of the kernel, and read from them.
std::vector<double> scalars_of(const OptimizerSettings& settings, const UpdateMoment& moment,
                               const Shape& parameter);
/// The same of such a part.
std::vector<double> scalars_of_part(const OptimizerSettings& settings, const UpdateMoment& moment,
                                    int64_t shared_norms, UpdateCall::Use use);
UpdateCall update_call_from(std::span<const double> scalars);

}  // namespace lockstep
