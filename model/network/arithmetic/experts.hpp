#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "model/core/values.hpp"
#include "model/network/layer.hpp"

namespace lockstep {

// Reference arithmetic of the experts of a mixture: feed-forwards without biases, each of the rows
// that it is given. Every intermediate tensor is rounded to the output's type.

/// Of w1 [hidden, embed], w2 [embed, hidden] and, of SwiGLU, w3 [hidden, embed].
using ExpertWeights = std::array<const Values*, 3>;
/// Where their gradients are added to; null: not wanted.
using ExpertGradients = std::array<Values*, 3>;

/// `rows_of`: of each expert, one behind the other in `input`.
void experts_forward(const Values& input, std::span<const ExpertWeights> weights,
                     std::span<const int64_t> rows_of, const MixtureArguments& mixture,
                     Values& output);
/// `input_gradient` is overwritten.
void experts_backward(const Values& input, std::span<const ExpertWeights> weights,
                      std::span<const int64_t> rows_of, const Values& output_gradient,
                      const MixtureArguments& mixture, Values& input_gradient,
                      std::span<const ExpertGradients> gradients);

}  // namespace lockstep
