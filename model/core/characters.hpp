#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace lockstep {

/// Continuation bytes of UTF-8 take no column on a screen.
constexpr bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
}

/// How many characters a text in UTF-8 has.
inline size_t characters(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, begins_character));
}

}  // namespace lockstep
