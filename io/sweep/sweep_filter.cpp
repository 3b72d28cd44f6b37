#include "io/sweep/sweep_filter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "io/expression/parser.hpp"
#include "io/scenario/names/spelling.hpp"
#include "model/expression/evaluate.hpp"

namespace lockstep {

namespace {

/// A value that a condition asked for and that the row does not have.
class NoSuchValue final : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class RowScope : public Environment {
 public:
  explicit RowScope(const SweepRow& row) : row_(row) {}

  std::optional<Value> lookup(std::string_view name) override {
    Value value = value_in(row_, name);
    if (value.is(Value::Kind::null)) {
      throw NoSuchValue("the row has no such value");
    }
    return value;
  }
  double random(const SourcePlace&) override {
    throw OperationError("a condition cannot draw random numbers", "compare results");
  }
  bool unknown(const SourcePlace&) override {
    throw OperationError("a condition cannot use `unknown`", "compare results");
  }

 private:
  const SweepRow& row_;
};

// A row that has some value of every type.
SweepRow stand_in_row(const std::vector<std::pair<std::string, std::string>>& keys) {
  SweepRow row;
  row.number = 1;
  row.verdict = "ok";
  row.values = keys;
  int64_t index = 0;
  for (const std::string_view name : figure_names()) {
    row.figures.emplace_back(name, figure_stand_in(name, index++));
  }
  return row;
}

// "step_time is 10007 s": what a value of each name looks like.
std::string remedy_for_types(const Expression& expression, Environment& values) {
  std::string text;
  for (const std::string& name : expression.names()) {
    text += fmt::format("{}`{}` is of type {}", text.empty() ? "" : ", ", name,
                        type_of(*values.lookup(name)));
  }
  return text.empty() ? "compare a result: step_time < 400 ms" : text;
}

std::optional<SweepFilterError> fault_of(
    const Expression& expression, const std::vector<std::pair<std::string, std::string>>& keys) {
  std::vector<std::string> names;
  for (const auto& [key, text] : keys) {
    names.push_back(key);
  }
  for (const std::string& name : expression.names()) {
    if (const std::string remedy = remedy_for_sweep_name(name, names); !remedy.empty()) {
      return SweepFilterError{fmt::format("there is no result or varied key `{}`", name), remedy};
    }
  }
  const SweepRow row = stand_in_row(keys);
  RowScope values(row);
  try {
    evaluate_each_condition(expression.root(), values);
  } catch (const EvaluationError& error) {
    return SweepFilterError{error.message(), error.remedy().empty()
                                                 ? remedy_for_types(expression, values)
                                                 : error.remedy()};
  } catch (const OperationError& error) {
    return SweepFilterError{error.what(), error.remedy()};
  }
  return std::nullopt;
}

}  // namespace

std::string remedy_for_sweep_name(const std::string& name, const std::vector<std::string>& keys) {
  std::vector<std::string_view> legal = figure_names();
  legal.insert(legal.end(), {"case", "verdict"});
  legal.insert(legal.end(), keys.begin(), keys.end());
  return std::ranges::count(legal, name) > 0 ? "" : spelling_remedy(name, legal);
}

std::variant<SweepFilter, SweepFilterError> SweepFilter::parse(
    const std::string& text, const std::vector<std::pair<std::string, std::string>>& keys) {
  ParsedExpression parsed = parse_expression(text, {}, TooLarge::largest);
  if (const auto* errors = std::get_if<std::vector<SyntaxError>>(&parsed)) {
    return SweepFilterError{errors->front().message, errors->front().remedy};
  }
  auto expression = std::get<Expression>(std::move(parsed));
  if (std::optional<SweepFilterError> fault = fault_of(expression, keys)) {
    return *std::move(fault);
  }
  return SweepFilter(std::move(expression));
}

bool SweepFilter::keeps(const SweepRow& row) const {
  RowScope values(row);
  try {
    return evaluate_condition(expression_, values);
  } catch (const std::runtime_error&) {  // also where a key has values of several types
    return false;
  }
}

}  // namespace lockstep
