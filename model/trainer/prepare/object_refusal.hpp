#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "model/trainer/prepare/prepare_parts.hpp"

namespace lockstep {

/// A number as Python prints it: a float has a point.
inline std::string python_text(double value, bool is_whole) {
  const std::string text = fmt::format("{}", value);
  const bool is_plain = text.find_first_not_of("-0123456789") == std::string::npos;
  return is_whole || !is_plain ? text : text + ".0";
}

/// One object, and the reasons against its arguments.
class Refuser {
 public:
  Refuser(Preparation& preparation, const Object& object, std::string remedy = "")
      : preparation_(preparation), object_(object), remedy_(std::move(remedy)) {}

  double number(std::string_view name, double otherwise) const {
    const PlainValue* const value = object_.find(name);
    return value == nullptr ? otherwise : value->number().value_or(otherwise);
  }
  bool has(std::string_view name) const {
    const PlainValue* const value = object_.find(name);
    return value != nullptr && value->number().has_value();
  }
  bool boolean(std::string_view name) const {
    const PlainValue* const value = object_.find(name);
    const bool* const given = value == nullptr ? nullptr : value->get_if<bool>();
    return given != nullptr && *given;
  }
  std::string text(std::string_view name, const char* otherwise) const {
    const PlainValue* const value = object_.find(name);
    const std::string* const given = value == nullptr ? nullptr : value->get_if<std::string>();
    return given == nullptr ? otherwise : *given;
  }
  std::string written(std::string_view name, double otherwise = 0) const {
    const PlainValue* const value = object_.find(name);
    const bool is_whole = value == nullptr || value->get_if<int64_t>() != nullptr;
    return python_text(number(name, otherwise), is_whole);
  }

  void refuse(std::string_view name, const std::string& reason, std::string remedy = "") const {
    const auto argument = std::ranges::find(object_.arguments, name, &ObjectArgument::name);
    const bool found = argument != object_.arguments.end() && argument->place.line > 0;
    add_problem(preparation_, Problem::Kind::refused, found ? argument->place : object_.place,
                fmt::format("{}: {}", object_.name, reason),
                remedy.empty() ? remedy_ : std::move(remedy), refused_code);
  }
  /// A given number from `least` to below `beyond`; else torch's reason and the number.
  void check(std::string_view name, double least, double beyond, std::string_view reason) const {
    const double value = number(name, least);
    if (has(name) && !(value >= least && value < beyond)) {
      refuse(name, fmt::format("{}{}", reason, written(name)));
    }
  }
  const Object& object() const { return object_; }

 private:
  Preparation& preparation_;
  const Object& object_;
  std::string remedy_;
};

/// What torch raises where an optimizer or a scheduler is made.
void check_optimizer(Preparation& preparation, const Object& object);
void check_scheduler(Preparation& preparation, const Object& object);

}  // namespace lockstep
