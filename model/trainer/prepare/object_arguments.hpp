#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/trainer/prepare/prepare_parts.hpp"

namespace lockstep {

/// Reads the arguments of an object whose types the loader has checked; what is absent or null has
/// its default.
class ObjectArguments {
 public:
  explicit ObjectArguments(const Object& object) : object_(object) {}

  bool boolean(std::string_view name, bool otherwise) const;
  int64_t integer(std::string_view name, int64_t otherwise, size_t position = none) const;
  double number(std::string_view name, double otherwise, size_t position = none) const;
  std::string text(std::string_view name, const std::string& otherwise = "",
                   size_t position = none) const;
  std::optional<bool> optional_boolean(std::string_view name) const;
  std::optional<int64_t> optional_integer(std::string_view name) const;
  std::optional<double> optional_number(std::string_view name) const;
  /// Null where it is absent or null.
  const PlainValue* find(std::string_view name, size_t position = none) const;

  static constexpr size_t none = 1000;  ///< has no position

 private:
  const Object& object_;
};

}  // namespace lockstep
