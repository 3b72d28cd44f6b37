#pragma once

#include <compare>
#include <optional>
#include <string_view>

namespace lockstep {

/// A release of a library: "2.5.3", "1.6".
struct Version {
  int major = 0;
  int minor = 0;
  int patch = 0;
  constexpr auto operator<=>(const Version&) const = default;
};

/// Nothing for a text that is no version. What is absent is 0; a suffix such as ".post0" is
/// dropped.
constexpr std::optional<Version> version_of(std::string_view text) {
  int parts[3] = {0, 0, 0};
  size_t at = 0;
  for (int part = 0; part < 3; ++part) {
    const size_t begin = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9' && at - begin < 6) {
      parts[part] = parts[part] * 10 + (text[at++] - '0');
    }
    if (at == begin) {
      return part == 0 ? std::nullopt : std::optional<Version>({parts[0], parts[1], parts[2]});
    }
    if (at == text.size() || text[at] != '.') {
      break;
    }
    ++at;
  }
  return Version{parts[0], parts[1], parts[2]};
}

}  // namespace lockstep
