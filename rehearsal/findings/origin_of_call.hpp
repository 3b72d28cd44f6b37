#pragma once

#include "model/expression/expression.hpp"
#include "rehearsal/findings/logged_origin.hpp"

namespace lockstep::cli {

/// Notes what a call in a logged value says of its origin: which metric it is, with the arguments
/// that its object would have, and whether a mean is taken.
void note_call(const ExpressionNode& call, Origin& origin);

}  // namespace lockstep::cli
