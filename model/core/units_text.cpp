#include "model/core/units_text.hpp"

#include <fmt/core.h>

#include <array>

namespace lockstep {

std::string text_of(Bytes bytes) {
  constexpr std::array<const char*, 5> units = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto amount = static_cast<double>(bytes.count());
  size_t unit = 0;
  while (amount >= 1024 && unit + 1 < units.size()) {
    amount /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes.count())
                   : fmt::format("{:.1f} {}", amount, units[unit]);
}

}  // namespace lockstep
