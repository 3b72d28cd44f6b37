#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/core/units.hpp"
#include "model/expression/value.hpp"

namespace lockstep {

/// Bounds of one evaluation, so that no expression takes the machine down.
struct EvaluationLimits {
  int64_t tensor_elements = int64_t{1} << 26;
  int64_t list_items = int64_t{1} << 20;
  /// All values made while evaluating, added up.
  Bytes made = Bytes(int64_t{4} << 30);
};

/// A function of the expression language; the table of them is in function.cpp.
struct Function {
  std::string_view name;
  int least_arguments = 1;
  int most_arguments = 1;  ///< -1: any number
  std::string_view form;   ///< "full(n, x)"
  /// Null for random(), which only the evaluator can draw. Errors: OperationError.
  Value (*apply)(std::span<const Value> arguments, const EvaluationLimits& limits) = nullptr;
};

/// Null for a name that is not built in.
const Function* find_function(std::string_view name);
/// Names of all built-in functions, in the order of the table.
std::vector<std::string_view> function_names();

/// x[i]: an item of a list, a part of a tensor (its first dimension drops), or the value of a text
/// key in a map. Errors: OperationError.
Value at(const Value& value, const Value& index);

}  // namespace lockstep
