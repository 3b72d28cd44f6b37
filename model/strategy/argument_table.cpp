#include "model/strategy/argument_table.hpp"

#include <charconv>

#include "model/core/ensure.hpp"

namespace lockstep {

namespace {

using ArgumentValue = StrategyArguments::Value;

template <class Number>
std::optional<ArgumentValue> number_of(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size()
             ? std::optional<ArgumentValue>(number)
             : std::nullopt;
}

std::optional<ArgumentValue> truth_of(std::string_view text) {
  return text == "true" || text == "false" ? std::optional<ArgumentValue>(text == "true")
                                           : std::nullopt;
}

}  // namespace

std::optional<ArgumentValue> default_of(const StrategyArgument& argument) {
  const std::string_view text = argument.default_text;
  const std::string_view type = argument.type;
  if (text.empty()) {
    return std::nullopt;
  }
  if (text == "null") {
    return std::monostate();
  }
  if (type == "bool") {
    return truth_of(text);
  }
  if (type == "int") {
    return number_of<int64_t>(text);
  }
  if (type == "float") {
    return number_of<double>(text);
  }
  if (type == "list" || type == "map") {
    return std::nullopt;
  }
  std::optional<ArgumentValue> value = type.empty() ? truth_of(text) : std::nullopt;
  value = !value && type.empty() ? number_of<int64_t>(text) : value;
  return value ? value : std::optional<ArgumentValue>(std::string(text));
}

StrategyArguments StrategyArgumentReader::with_default(const std::string& name) const {
  const StrategyArgument* row = find_argument(rows_, name);
  ensure(row != nullptr, "an argument that is read has a row");
  const std::optional<ArgumentValue> otherwise = default_of(*row);
  ensure(otherwise.has_value(), "the row of an argument that is read has a default of its type");
  StrategyArguments value;
  value.set(name, *otherwise);
  return value;
}

bool StrategyArgumentReader::boolean(const std::string& name) const {
  return given_.boolean(name, with_default(name).boolean(name, false));
}

int64_t StrategyArgumentReader::integer(const std::string& name) const {
  return given_.integer(name, with_default(name).integer(name, 0));
}

double StrategyArgumentReader::number(const std::string& name) const {
  return given_.number(name, with_default(name).number(name, 0));
}

std::string StrategyArgumentReader::text(const std::string& name) const {
  return given_.text(name, with_default(name).text(name, ""));
}

}  // namespace lockstep
