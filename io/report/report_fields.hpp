#pragma once

#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "io/report/rank_report.hpp"

namespace lockstep {

using Json = nlohmann::json;

inline constexpr const char* report_format = "lockstep rank report";
inline constexpr int report_version = 5;

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
    throw ReportError("a list of the report is cut short");
  }
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) {
    std::memcpy(values.data(), bytes.data(), bytes.size());
  }
  return values;
}

/// An enumerator by its number, which must be at most `last`.
template <class Enum>
Enum enumerator_of(const Json& json, Enum last) {
  const auto number = json.get<int64_t>();
  if (number < 0 || number > static_cast<int64_t>(last)) {
    throw ReportError("the report has an unknown kind");
  }
  return static_cast<Enum>(number);
}

/// That every enumerator of a row is one.
inline void check_kinds(const Row& row) {
  const bool known = row.row <= RowKind::finish && row.kind <= OpKind::event &&
                     row.dtype <= DType::uint8 && row.reduction <= Reduction::max &&
                     row.kernel <= last_kernel;
  if (!known) {
    throw ReportError("the report has a row of an unknown kind");
  }
}

Json json_of_log(const RankLog& log);
RankLog log_of_json(const Json& json);

}  // namespace lockstep
