#include "model/strategy/arguments.hpp"

#include <fmt/core.h>

namespace lockstep {

namespace {
[[noreturn]] void wrong_type(const std::string& name, const char* wanted) {
  throw ArgumentProblem(fmt::format("strategy argument {} must be {}", name, wanted), name);
}
}  // namespace

const StrategyArguments::Value* StrategyArguments::find(const std::string& name) const {
  if (reads_ != nullptr) {
    reads_->insert(name);
  }
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

bool StrategyArguments::boolean(const std::string& name, bool otherwise) const {
  const Value* found = find(name);
  if (found == nullptr || is_none(name)) {
    return otherwise;
  }
  const bool* value = std::get_if<bool>(found);
  return value != nullptr ? *value : (wrong_type(name, "true or false"), false);
}

int64_t StrategyArguments::integer(const std::string& name, int64_t otherwise) const {
  const Value* found = find(name);
  if (found == nullptr || is_none(name)) {
    return otherwise;
  }
  const int64_t* value = std::get_if<int64_t>(found);
  return value != nullptr ? *value : (wrong_type(name, "a whole number"), 0);
}

double StrategyArguments::number(const std::string& name, double otherwise) const {
  const Value* found = find(name);
  if (found == nullptr || is_none(name)) {
    return otherwise;
  }
  if (const int64_t* whole = std::get_if<int64_t>(found)) {
    return static_cast<double>(*whole);
  }
  const double* value = std::get_if<double>(found);
  return value != nullptr ? *value : (wrong_type(name, "a number"), 0);
}

std::string StrategyArguments::text(const std::string& name, const std::string& otherwise) const {
  const Value* found = find(name);
  if (found == nullptr || is_none(name)) {
    return otherwise;
  }
  const std::string* value = std::get_if<std::string>(found);
  return value != nullptr ? *value : (wrong_type(name, "a text"), "");
}

std::vector<std::string> StrategyArguments::texts(const std::string& name) const {
  const Value* found = find(name);
  if (found == nullptr || is_none(name)) {
    return {};
  }
  if (const auto* list = std::get_if<std::vector<std::string>>(found)) {
    return *list;
  }
  return {text(name, "")};
}

}  // namespace lockstep
