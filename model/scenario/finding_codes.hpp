#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace lockstep {

/// Every code that a finding can have.
inline constexpr std::array<std::string_view, 29> finding_codes = {
    "LS101", "LS102", "LS103", "LS104", "LS105", "LS106", "LS107", "LS108", "LS109", "LS201",
    "LS202", "LS203", "LS301", "LS302", "LS303", "LS304", "LS305", "LS306", "LS307", "LS308",
    "LS309", "LS310", "LS311", "LS312", "LS313", "LS401", "LS402", "LS501", "LS502"};

/// Codes with a meaning and no check yet: a scenario may name them, and a note says that nothing
/// checks them.
inline constexpr std::array<std::string_view, 1> planned_codes = {"LS403"};

constexpr bool is_planned_code(std::string_view code) {
  return std::find(planned_codes.begin(), planned_codes.end(), code) != planned_codes.end();
}

}  // namespace lockstep
