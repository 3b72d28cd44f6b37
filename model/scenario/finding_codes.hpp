#pragma once

#include <array>
#include <string_view>

namespace lockstep {

/// Every code that a finding can have.
inline constexpr std::array<std::string_view, 33> finding_codes = {
    "LS101", "LS102", "LS103", "LS104", "LS105", "LS106", "LS107", "LS108", "LS109",
    "LS201", "LS202", "LS203", "LS301", "LS302", "LS303", "LS304", "LS305", "LS306",
    "LS307", "LS308", "LS309", "LS310", "LS311", "LS312", "LS313", "LS314", "LS401",
    "LS402", "LS403", "LS404", "LS501", "LS502", "LS503"};

}  // namespace lockstep
