#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/expression/evaluate.hpp"

namespace lockstep {

/// Numbers of a value in row-major order, those of a list one item after the other.
using Adjoint = std::vector<double>;

/// Whether autograd records an expression: some name for which `tracked` holds reaches its value
/// otherwise than through a comparison, or a call such as len(x) or float(x) that leaves the graph.
bool is_differentiable_in(const Expression& expression,
                          const std::function<bool(std::string_view)>& tracked);

/// The reverse mode of autograd on one expression: for each name in `tracked`, the sum over all
/// numbers of the expression's value of `adjoint` times the derivative by that name's numbers. Ties
/// of min(x) and max(x) share evenly, as in PyTorch. Names are bound as when the value was
/// computed. Throws EvaluationError at a part through which no derivative is known.
std::map<std::string, Adjoint> pull_back(const Expression& expression, Environment& environment,
                                         const Adjoint& adjoint,
                                         const std::vector<std::string>& tracked);

}  // namespace lockstep
