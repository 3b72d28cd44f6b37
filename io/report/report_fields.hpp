#pragma once

#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "io/report/rank_report.hpp"

namespace lockstep {

using Json = nlohmann::json;

inline constexpr const char* report_format = "lockstep rank report";

/// Plain values as the bytes they have in memory.
template <class T>
Json binary_of(std::span<const T> values) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto bytes = std::as_bytes(values);
  std::vector<uint8_t> copy(bytes.size());
  if (!bytes.empty()) {
    std::memcpy(copy.data(), bytes.data(), bytes.size());
  }
  return Json::binary(std::move(copy));
}

template <class T>
std::vector<T> values_of_binary(const Json& json) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto& bytes = json.get_binary();
  if (bytes.size() % sizeof(T) != 0) {
    throw ReportError("a list of the report is cut short: run the ranks again");
  }
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) {
    std::memcpy(values.data(), bytes.data(), bytes.size());
  }
  return values;
}

/// A whole number from `low` to `high`.
template <class T>
T whole_of(const Json& json, T low = std::numeric_limits<T>::min(),
           T high = std::numeric_limits<T>::max()) {
  const bool fits = json.is_number_unsigned()  ? std::in_range<T>(json.get<uint64_t>())
                    : json.is_number_integer() ? std::in_range<T>(json.get<int64_t>())
                                               : false;
  const T value = fits ? json.get<T>() : T{};
  if (!fits || value < low || value > high) {
    throw ReportError("the report has a number out of range: run the ranks again");
  }
  return value;
}

/// How many of something, or how large it is.
inline int64_t count_of(const Json& json) {
  return whole_of<int64_t>(json, 0, std::numeric_limits<int64_t>::max() / 4);
}

inline double real_of(const Json& json) {
  if (!json.is_number()) {
    throw ReportError("the report lacks a number: run the ranks again");
  }
  return json.get<double>();
}

/// A loop over what is no list would see a value once, or an object's values.
inline void check_list(const Json& json) {
  if (!json.is_array()) {
    throw ReportError("the report lacks a list: run the ranks again");
  }
}

inline const Json& list_at(const Json& json, const char* key) {
  const Json& list = json.at(key);
  check_list(list);
  return list;
}

inline SiteId site_of(const Json& json) { return SiteId{whole_of<uint32_t>(json)}; }

/// An enumerator by its number, which must be at most `last`.
template <class Enum>
Enum enumerator_of(const Json& json, Enum last) {
  return static_cast<Enum>(whole_of<int64_t>(json, 0, static_cast<int64_t>(last)));
}

Json json_of_log(const RankLog& log);
RankLog log_of_json(const Json& json);

}  // namespace lockstep
