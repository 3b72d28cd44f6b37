#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "io/sweep/sweep_row.hpp"

namespace lockstep {

/// "`case` is text, not a whole number": a field that is not there, or of the wrong type.
class SweepFieldError final : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The fields of one line of a sweep's file, of exactly the types in which they are written: what
/// the library of JSON would convert (`true` to 1, 2.5 to 2) is wrong here. Every function throws
/// SweepFieldError.
class SweepFields {
 public:
  explicit SweepFields(const nlohmann::ordered_json& object) : object_(object) {}

  int64_t whole(const char* name, int64_t least) const;
  std::string text(const char* name) const;
  std::vector<std::string> texts(const char* name) const;
  std::vector<std::vector<std::string>> lists(const char* name) const;
  std::vector<std::pair<std::string, std::string>> texts_by_key(const char* name) const;
  /// Those that this program knows, in its order.
  std::vector<std::pair<std::string, Value>> figures(const char* name) const;

 private:
  const nlohmann::ordered_json& at(const char* name) const;

  const nlohmann::ordered_json& object_;
};

}  // namespace lockstep
