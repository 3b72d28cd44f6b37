#include "io/sweep/sweep_row.hpp"

#include <algorithm>
#include <cmath>

#include "io/expression/parser.hpp"
#include "io/scenario/expectations/expectation_names.hpp"
#include "io/scenario/reader/scalar.hpp"
#include "model/expression/evaluate.hpp"

namespace lockstep {

namespace {

/// Constants need none.
class NoEnvironment final : public Environment {
 public:
  std::optional<Value> lookup(std::string_view) override { return std::nullopt; }
  double random(const SourcePlace&) override { throw OperationError("no random numbers here"); }
  bool unknown(const SourcePlace&) override { throw OperationError("no `unknown` here"); }
};

}  // namespace

std::vector<std::string_view> figure_names() {
  std::vector<std::string_view> names = result_names();
  // No sweep follows restarts.
  std::erase_if(names,
                [](std::string_view name) { return name == "restarts" || name == "goodput"; });
  names.push_back(exposed_share);
  return names;
}

Value figure_stand_in(std::string_view name, int64_t index) {
  return name == exposed_share ? Value(0.25 + static_cast<double>(index))
                               : stand_in_of(name, index);
}

std::string figure_key(std::string_view name) {
  const Value value = figure_stand_in(name, 0);
  if (!value.is(Value::Kind::quantity)) {
    return std::string(name);
  }
  return std::string(name) + (value.quantity().kind == QuantityKind::time ? "_s" : "_bytes");
}

Value value_of_text(const std::string& text) {
  const auto whole = parse_int(text);
  if (const auto* number = std::get_if<int64_t>(&whole)) {
    return Value(*number);
  }
  const auto decimal = parse_float(text);
  if (const auto* number = std::get_if<double>(&decimal); number && std::isfinite(*number)) {
    return Value(*number);
  }
  if (text == "true" || text == "false") {
    return Value(text == "true");
  }
  const ParsedExpression parsed = parse_expression(text, {});
  const auto* expression = std::get_if<Expression>(&parsed);
  if (expression != nullptr && expression->is_constant()) {
    try {
      NoEnvironment none;
      const Value value = evaluate(*expression, none);
      if (value.is(Value::Kind::quantity)) {
        return value;
      }
    } catch (const std::runtime_error&) {
      return Value(text);
    }
  }
  return Value(text);
}

Value value_in(const SweepRow& row, std::string_view name) {
  const auto figure = std::ranges::find(row.figures, name, &std::pair<std::string, Value>::first);
  if (figure != row.figures.end()) {
    return figure->second;
  }
  const auto key = std::ranges::find(row.values, name, &std::pair<std::string, std::string>::first);
  if (key != row.values.end()) {
    return value_of_text(key->second);
  }
  if (name == "case") {
    return Value(row.number);
  }
  return name == "verdict" ? Value(row.verdict) : Value();
}

}  // namespace lockstep
