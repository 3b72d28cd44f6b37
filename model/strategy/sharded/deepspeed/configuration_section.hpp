#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/core/spelling.hpp"
#include "model/strategy/sharded/deepspeed/configured_objects.hpp"

namespace lockstep {

using ClassNames = std::vector<std::string_view>;

enum class ParameterType : uint8_t { number, truth, text, numbers };

struct ParameterRow {
  std::string_view name;
  ParameterType type = ParameterType::number;
  bool may_be_none = false;
};

/// A class that a section may name, and what its constructor takes.
struct SectionClass {
  std::string_view name;
  std::vector<ParameterRow> parameters;
  std::vector<std::string_view> required{};
};

constexpr ParameterRow truth_row(std::string_view name) {
  return {name, ParameterType::truth, true};
}

/// "optimizer" or "scheduler" of a configuration.
class Section {
 public:
  Section(const StrategyArguments& arguments, std::string_view name)
      : arguments_(arguments), name_(fmt::format("config.{}", name)) {}

  bool is_there() const {
    return std::ranges::any_of(arguments_.all(), [this](const auto& each) {
      return each.first == name_ || each.first.starts_with(name_ + ".");
    });
  }
  const std::string& name() const { return name_; }
  std::string type_name() const { return name_ + ".type"; }
  bool has_type() const { return arguments_.has(type_name()); }
  std::string type() const { return arguments_.text(type_name(), ""); }
  std::string parameter_name(std::string_view parameter) const {
    return fmt::format("{}.params.{}", name_, parameter);
  }
  bool has(std::string_view parameter) const { return arguments_.has(parameter_name(parameter)); }
  bool truth(std::string_view parameter, bool otherwise) const {
    return arguments_.boolean(parameter_name(parameter), otherwise);
  }
  double number(std::string_view parameter, double otherwise) const {
    return arguments_.number(parameter_name(parameter), otherwise);
  }
  bool has_parameters() const {
    const std::string prefix = name_ + ".params.";
    return std::ranges::any_of(
        arguments_.all(), [&prefix](const auto& each) { return each.first.starts_with(prefix); });
  }

  /// `params` is a map, or none.
  void check_parameters() const {
    if (arguments_.has(name_ + ".params")) {
      throw ArgumentProblem("`params` of a DeepSpeed configuration holds names and values",
                            name_ + ".params", "write {\"type\": .., \"params\": {..}}");
    }
  }

  /// Its parameters but those that the engine takes out, checked as the constructor does.
  ConfiguredObject object(const SectionClass& of, const ClassNames& taken = {}) const {
    ConfiguredObject made{name_, std::string(of.name)};
    const std::string prefix = name_ + ".params.";
    for (const auto& [name, value] : arguments_.all()) {
      const std::string own = name.starts_with(prefix) ? name.substr(prefix.size()) : "";
      if (own.empty() || std::ranges::count(taken, own) != 0) {
        continue;
      }
      const auto row = std::ranges::find(of.parameters, own, &ParameterRow::name);
      if (row == of.parameters.end()) {
        ClassNames known;
        std::ranges::transform(of.parameters, std::back_inserter(known), &ParameterRow::name);
        throw RefusedArgument(
            fmt::format("TypeError: {}.__init__() got an unexpected keyword argument '{}'", of.name,
                        own),
            name, did_you_mean(own, known));
      }
      check_type(of, *row, name, value);
      made.arguments.emplace_back(own, name);
    }
    for (const std::string_view name : of.required) {
      if (!has(name)) {
        throw RefusedArgument(
            fmt::format("TypeError: {}.__init__() missing a required argument: '{}'", of.name,
                        name),
            name_);
      }
    }
    return made;
  }

 private:
  // HuggingFace's Trainer fills "auto" in; Lightning hands the section on as it is.
  static void check_type(const SectionClass& of, const ParameterRow& row, const std::string& name,
                         const StrategyArguments::Value& value) {
    const auto* text = std::get_if<std::string>(&value);
    if (text != nullptr && *text == "auto") {
      throw RefusedArgument(
          fmt::format(
              "TypeError: `{}` of {} is the text \"auto\", which Lightning does not fill in",
              row.name, of.name),
          name, "write its value");
    }
    const auto* several = std::get_if<std::vector<std::string>>(&value);
    const bool fits =
        row.type == ParameterType::number
            ? std::holds_alternative<double>(value) || std::holds_alternative<int64_t>(value)
        : row.type == ParameterType::truth ? std::holds_alternative<bool>(value)
        : row.type == ParameterType::text  ? text != nullptr
                                           : several != nullptr && several->size() == 2;
    if (std::holds_alternative<std::monostate>(value) && !row.may_be_none) {
      throw RefusedArgument(fmt::format("TypeError: `{}` of {} is null, which Python reads as None",
                                        row.name, of.name),
                            name, "leave it out for its default, or write its value");
    }
    if (!fits && !std::holds_alternative<std::monostate>(value)) {
      throw ArgumentProblem(fmt::format("`{}` of {} must be {}", row.name, of.name,
                                        row.type == ParameterType::number  ? "a number"
                                        : row.type == ParameterType::truth ? "true or false"
                                        : row.type == ParameterType::text  ? "a text"
                                                                           : "two numbers"),
                            name, "write its value, or leave it out for its default");
    }
  }

  const StrategyArguments& arguments_;
  std::string name_;
};

inline int64_t stage_of(const StrategyArguments& arguments) {
  return static_cast<int64_t>(arguments.number("config.zero_optimization.stage", 0));
}

std::string in_lower_case(std::string text);
/// The optimizer that `optimizer` of a configuration makes.
ConfiguredObject optimizer_of(const StrategyArguments& arguments, const Section& section);

}  // namespace lockstep
