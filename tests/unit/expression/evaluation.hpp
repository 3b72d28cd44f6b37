#pragma once

#include <map>
#include <string>

#include "io/expression/parser.hpp"
#include "model/expression/evaluate.hpp"

namespace lockstep::test {

/// Binds what a test says; random() counts its calls, `unknown` is what the test sets.
class Bindings : public Environment {
 public:
  Bindings() = default;
  explicit Bindings(std::map<std::string, Value, std::less<>> values)
      : values_(std::move(values)) {}
  std::optional<Value> lookup(std::string_view name) override {
    ++lookups;
    const auto found = values_.find(name);
    return found == values_.end() ? std::nullopt : std::optional(found->second);
  }
  double random(const SourcePlace& place) override {
    random_place = place;
    return 0.25;
  }
  bool unknown(const SourcePlace& place) override {
    unknown_place = place;
    return outcome;
  }
  std::optional<Value> call(std::string_view name, std::span<const Value> arguments) override {
    if (name == "refuse") {
      throw OperationError("refused", "do not call it");
    }
    if (name != "count_of_arguments") {
      return std::nullopt;
    }
    return static_cast<int64_t>(arguments.size());
  }
  int lookups = 0;
  bool outcome = false;
  SourcePlace random_place;
  SourcePlace unknown_place;

 private:
  std::map<std::string, Value, std::less<>> values_;
};

/// Texts of tests begin at scenario.yaml:3:11.
inline const SourcePlace start{"scenario.yaml", 3, 11};

inline Expression expression(std::string_view text) {
  ParsedExpression parsed = parse_expression(text, start);
  if (const auto* errors = std::get_if<std::vector<SyntaxError>>(&parsed)) {
    throw std::invalid_argument(std::string(text) + ": " + errors->front().message);
  }
  return std::get<Expression>(parsed);
}

inline Value value_of(std::string_view text, Bindings bindings = {}) {
  return evaluate(expression(text), bindings);
}

/// "4: division by zero": the offset in the text at which the evaluation failed, and why.
inline std::string error_of(std::string_view text, Bindings bindings = {}) {
  try {
    return "no error: " + text_of(evaluate(expression(text), bindings));
  } catch (const EvaluationError& error) {
    return std::to_string(error.place().column - start.column) + ": " + error.message();
  }
}

}  // namespace lockstep::test
