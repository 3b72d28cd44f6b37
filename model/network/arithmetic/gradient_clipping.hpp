#pragma once

#include <span>

#include "model/core/values.hpp"

namespace lockstep {

// Reference arithmetic of torch.nn.utils.clip_grad_norm_ (of the Euclidean norm) and
// clip_grad_value_. The norm is that of all gradients together.

/// One element: the sum of the squares of all elements, rounded once to `dtype`.
Values squared_norm(std::span<const Values> gradients, DType dtype);
/// gradient *= min(1, max_norm / (norm + 1e-6)), in the type of the squared norm.
void clip_by_norm(double max_norm, const Values& squared_norm, Values& gradient);
/// Every element to at most `limit`, at least -`limit`; a NaN stays.
void clip_by_value(double limit, Values& gradient);

/// Whether no element is infinite or NaN: what torch.amp.GradScaler looks for in gradients.
bool all_finite(const Values& gradient);

}  // namespace lockstep
