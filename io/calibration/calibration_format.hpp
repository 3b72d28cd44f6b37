#pragma once

#include <string_view>

#include "model/cluster/calibration.hpp"

namespace lockstep {

inline constexpr const char* calibration_format = "lockstep-calibration";
inline constexpr int calibration_version = 1;

constexpr std::string_view name_of(HeldOut::Part part) {
  return part == HeldOut::Part::compute ? "compute" : "communication";
}

}  // namespace lockstep
