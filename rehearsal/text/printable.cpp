#include "rehearsal/text/printable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <random>

namespace lockstep::cli {

namespace {

/// One character of UTF-8 and its length in bytes; of length 0 where the bytes are none.
struct Character {
  uint32_t code = 0;
  size_t bytes = 0;
};

Character first_of(std::string_view text) {
  const auto byte = [text](size_t at) { return static_cast<uint8_t>(text[at]); };
  const uint8_t first = byte(0);
  if (first < 0x80) {
    return {first, 1};
  }
  const size_t bytes = first >= 0xf0 && first < 0xf5   ? 4
                       : first >= 0xe0 && first < 0xf0 ? 3
                       : first >= 0xc2 && first < 0xe0 ? 2
                                                       : 0;
  if (bytes == 0 || text.size() < bytes) {
    return {};
  }
  uint32_t code = first & (0x7fu >> bytes);
  for (size_t at = 1; at < bytes; ++at) {
    if ((byte(at) & 0xc0) != 0x80) {
      return {};
    }
    code = code << 6 | (byte(at) & 0x3fu);
  }
  constexpr uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_legal =
      code >= least[bytes] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return is_legal ? Character{code, bytes} : Character{};
}

bool is_control(uint32_t code) {
  const bool turns_text = (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029 ||
         turns_text;
}

// Drawn anew in each process, so that no file can hold it.
const std::string& mark_begin() {
  static const std::string begin = [] {
    std::random_device device;
    return fmt::format("\x0e{:08x}{:08x}", device(), device());
  }();
  return begin;
}
constexpr char mark_end = '\x0f';

}  // namespace

std::string printable(std::string_view text, std::string_view keep) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character next = first_of(text);
    if (next.bytes == 0) {
      out += fmt::format("\\x{:02x}", static_cast<uint8_t>(text.front()));
      text.remove_prefix(1);
      continue;
    }
    const bool stays = !is_control(next.code) ||
                       (next.bytes == 1 && keep.find(text.front()) != std::string_view::npos);
    if (stays) {
      out += text.substr(0, next.bytes);
    } else if (next.code == '\n') {
      out += "\\n";
    } else {
      out += next.code < 0x80 ? fmt::format("\\x{:02x}", next.code)
                              : fmt::format("\\u{:04x}", next.code);
    }
    text.remove_prefix(next.bytes);
  }
  return out;
}

std::string printable_result(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t begin = std::min(text.find(mark_begin()), text.size());
    out += printable(text.substr(0, begin), "\n\t");
    text.remove_prefix(begin);
    const size_t end = text.find(mark_end);
    if (!text.empty() && end == std::string_view::npos) {
      text.remove_prefix(mark_begin().size());
    } else if (!text.empty()) {
      out += "\033[";
      out += text.substr(mark_begin().size(), end - mark_begin().size());
      out += 'm';
      text.remove_prefix(end + 1);
    }
  }
  return out;
}

std::string colour_mark(std::string_view code) {
  return mark_begin() + std::string(code) + mark_end;
}

}  // namespace lockstep::cli
