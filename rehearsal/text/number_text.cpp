#include "rehearsal/text/number_text.hpp"

#include <fmt/format.h>

namespace lockstep::cli {

std::string number_text(double number) {
  const double size = number < 0 ? -number : number;
  if (size >= 1e6 && size < 1e9) {
    return fmt::format("{:.3g} M", number * 1e-6);
  }
  if (size >= 1e4 && size < 1e6) {
    return fmt::format("{:.3g} k", number * 1e-3);
  }
  return size != 0 && (size < 1e-4 || size >= 1e15) ? fmt::format("{:.3g}", number)
                                                    : fmt::format("{:.4g}", number);
}

std::string count_text(int64_t count) {
  constexpr int64_t million = 1'000'000;
  constexpr int64_t billion = 1'000 * million;
  if (count >= 1'000 * billion) {
    return fmt::format("{:.3g} T", static_cast<double>(count) / 1e12);
  }
  if (count >= billion) {
    return fmt::format("{:.3g} B", static_cast<double>(count) / static_cast<double>(billion));
  }
  if (count >= 10 * million) {
    return fmt::format("{:.3g} M", static_cast<double>(count) / static_cast<double>(million));
  }
  std::string digits = std::to_string(count);
  for (size_t at = digits.size(); at > 3 && count >= 1000; at -= 3) {
    if (at - 3 > 0) {
      digits.insert(at - 3, ",");
    }
  }
  return digits;
}

std::string plural(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string percent_text(double fraction) {
  const double percent = fraction * 100;
  return percent > 0 && percent < 0.5 ? "<1 %" : fmt::format("{:.0f} %", percent);
}

}  // namespace lockstep::cli
