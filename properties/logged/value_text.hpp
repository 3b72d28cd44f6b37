#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace lockstep {

/// Six digits of a value that was logged; what is no number has no sign.
inline std::string value_text(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{:.6g}", value);
}

}  // namespace lockstep
