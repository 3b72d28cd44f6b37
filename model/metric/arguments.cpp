#include "model/metric/arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lockstep {

const PlainValue* MetricArguments::find(std::string_view name) {
  asked_.emplace(name);
  const PlainValue* value = object_->find(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

SourcePlace MetricArguments::place_of(std::string_view name) const {
  const PlainValue* value = object_->find(name);
  return value == nullptr ? object_->place : value->place;
}

void MetricArguments::fail(const SourcePlace& place, const std::string& message,
                           const std::string& remedy) const {
  throw MetricError(place, fmt::format("{}: {}", object_->name, message), remedy, false);
}

void MetricArguments::fail_unsupported(const SourcePlace& place, const std::string& message,
                                       const std::string& remedy) const {
  throw MetricError(place, fmt::format("{}: {}", object_->name, message), remedy, true);
}

bool MetricArguments::boolean(std::string_view name, bool otherwise) {
  const PlainValue* value = find(name);
  if (value == nullptr) {
    return otherwise;
  }
  const bool* given = value->get_if<bool>();
  if (given == nullptr) {
    fail(value->place, fmt::format("`{}` is true or false", name));
  }
  return *given;
}

double MetricArguments::number(std::string_view name, double otherwise) {
  const PlainValue* value = find(name);
  if (value == nullptr) {
    return otherwise;
  }
  const std::optional<double> given = value->number();
  if (!given || !std::isfinite(*given)) {
    fail(value->place, fmt::format("`{}` is a number", name));
  }
  return *given;
}

std::optional<int64_t> MetricArguments::integer(std::string_view name) {
  const PlainValue* value = find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  const int64_t* given = value->get_if<int64_t>();
  if (given == nullptr) {
    fail(value->place, fmt::format("`{}` is a whole number", name));
  }
  return *given;
}

int64_t MetricArguments::integer(std::string_view name, int64_t otherwise) {
  return integer(name).value_or(otherwise);
}

std::string MetricArguments::text(std::string_view name, const std::string& otherwise) {
  const PlainValue* value = find(name);
  if (value == nullptr) {
    return otherwise;
  }
  const std::string* given = value->get_if<std::string>();
  if (given == nullptr) {
    fail(value->place, fmt::format("`{}` is a text", name));
  }
  return *given;
}

size_t MetricArguments::choice(std::string_view name, const std::vector<std::string>& choices,
                               size_t otherwise) {
  const std::string given = text(name, choices[otherwise]);
  const auto found = std::find(choices.begin(), choices.end(), given);
  if (found == choices.end()) {
    fail(place_of(name), fmt::format("`{}` is no {}", given, name),
         fmt::format("use one of {}", fmt::join(choices, ", ")));
  }
  return static_cast<size_t>(found - choices.begin());
}

void MetricArguments::require_default(std::string_view name, const PlainValue& value) {
  const PlainValue* given = find(name);
  if (given != nullptr && text_of(*given) != text_of(value)) {
    fail_unsupported(given->place, fmt::format("`{}: {}` is not modelled", name, text_of(*given)),
                     fmt::format("leave it at {}", text_of(value)));
  }
}

void MetricArguments::finish() const {
  for (const ObjectArgument& argument : object_->arguments) {
    if (asked_.count(argument.name) == 0) {
      fail(argument.place, argument.name.empty()
                               ? std::string("arguments inside a collection are given by name")
                               : fmt::format("there is no argument `{}`", argument.name));
    }
  }
}

}  // namespace lockstep
