#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "model/expression/evaluation_error.hpp"
#include "model/expression/expression.hpp"
#include "model/expression/function.hpp"
#include "model/expression/value.hpp"

namespace lockstep {

/// The context of an evaluation: one rank at one moment. Its functions may throw
/// OperationError; the evaluator adds the place.
class Environment {
 public:
  virtual ~Environment() = default;
  /// The value of a name as it was written ("rank", "self.total"); nothing if it is unbound.
  virtual std::optional<Value> lookup(std::string_view name) = 0;
  /// Uniform in [0, 1), for one call of random() at this place.
  virtual double random(const SourcePlace& place) = 0;
  /// The outcome of one `unknown` at this place. It is asked where it decides: of `unknown and X`
  /// not where X is false.
  virtual bool unknown(const SourcePlace& place) = 0;
  /// A function that is not built in; nothing if there is none of that name.
  virtual std::optional<Value> call(std::string_view name, std::span<const Value> arguments);
};

/// The value. Operands from left to right; `and` and `or` evaluate the right one only where it
/// decides, and give a bool. Throws EvaluationError with the place of the part that has no value:
/// wrong types, division by zero, overflow, an index out of range, an unbound name, a limit.
Value evaluate(const Expression& expression, Environment& environment,
               const EvaluationLimits& limits = {});
/// As `evaluate`; an error where the value is no condition (see `condition_of`).
bool evaluate_condition(const Expression& expression, Environment& environment);
/// The same of all that `and` and `or` connect, which stop early otherwise: what a check of types
/// looks at.
void evaluate_each_condition(const ExpressionNode& node, Environment& environment);
/// As `evaluate`; an error where the value is no int (see `integer_of`, also for `what`).
int64_t evaluate_integer(const Expression& expression, Environment& environment,
                         std::string_view what);

}  // namespace lockstep
