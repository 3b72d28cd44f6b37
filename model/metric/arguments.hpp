#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/metric/definition.hpp"
#include "model/metric/labels.hpp"

namespace lockstep {

/// Reads the arguments of a metric's object by name; what nobody has asked for is an error.
class MetricArguments {
 public:
  explicit MetricArguments(const Object& object) : object_(&object) {}

  const Object& object() const { return *object_; }
  /// Null where it is absent or null.
  const PlainValue* find(std::string_view name);
  bool boolean(std::string_view name, bool otherwise);
  double number(std::string_view name, double otherwise);
  int64_t integer(std::string_view name, int64_t otherwise);
  std::optional<int64_t> integer(std::string_view name);
  std::string text(std::string_view name, const std::string& otherwise);
  /// One of the choices; the error names them.
  size_t choice(std::string_view name, const std::vector<std::string>& choices, size_t otherwise);
  /// Throws unless the argument is absent or has the value that changes nothing.
  void require_default(std::string_view name, const PlainValue& value);
  /// Throws for arguments that nobody has asked for.
  void finish() const;

  [[noreturn]] void fail(const SourcePlace& place, const std::string& message,
                         const std::string& remedy = "") const;
  [[noreturn]] void fail_unsupported(const SourcePlace& place, const std::string& message,
                                     const std::string& remedy = "") const;
  /// Returns the place of the argument, or of the object if it is absent.
  SourcePlace place_of(std::string_view name) const;

 private:
  const Object* object_;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace lockstep
