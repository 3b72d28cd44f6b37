#include "io/scenario/reader/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace lockstep {
namespace {

/// Bytes of the UTF-8 sequence at `position`, 0 when there is none (Unicode 15, table 3-7).
size_t sequence_length(std::string_view text, size_t position) {
  const auto byte = [&](size_t offset) -> unsigned {
    return position + offset < text.size() ? static_cast<unsigned char>(text[position + offset])
                                           : 0u;
  };
  const auto continues = [&](size_t offset, unsigned low = 0x80, unsigned high = 0xbf) {
    return byte(offset) >= low && byte(offset) <= high;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) {
    return 1;
  }
  if (lead >= 0xc2 && lead <= 0xdf) {
    return continues(1) ? 2 : 0;
  }
  if (lead >= 0xe0 && lead <= 0xef) {
    const unsigned low = lead == 0xe0 ? 0xa0 : 0x80;
    const unsigned high = lead == 0xed ? 0x9f : 0xbf;
    return continues(1, low, high) && continues(2) ? 3 : 0;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    const unsigned low = lead == 0xf0 ? 0x90 : 0x80;
    const unsigned high = lead == 0xf4 ? 0x8f : 0xbf;
    return continues(1, low, high) && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

SourcePlace place_at(std::string_view text, const std::string& name, size_t position) {
  const std::string_view before = text.substr(0, position);
  const size_t line_start =
      before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return {name, static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1,
          static_cast<int>(position - line_start) + 1};
}

}  // namespace

std::optional<Diagnostic> check_text(std::string_view text, const std::string& name,
                                     size_t limit_bytes) {
  if (text.size() > limit_bytes) {
    return Diagnostic{{name, 0, 0},
                      1,
                      fmt::format("the file is larger than {} MiB", limit_bytes >> 20),
                      "put values into a CSV file and name it in `data.values`"};
  }
  for (size_t position = 0; position < text.size();) {
    const size_t length = sequence_length(text, position);
    if (length == 0) {
      return Diagnostic{place_at(text, name, position), 1, "this byte is not UTF-8",
                        "save the file as UTF-8"};
    }
    const char first = text[position];
    const bool control = static_cast<unsigned char>(first) < 0x20 || first == 0x7f;
    if (control && first != '\n' && first != '\t' && first != '\r') {
      return Diagnostic{place_at(text, name, position), 1,
                        "a scenario cannot contain control characters", "remove it"};
    }
    position += length;
  }
  return std::nullopt;
}

bool spelled_null(std::string_view text, size_t position) {
  constexpr std::string_view word = "null";
  if (position > text.size() || text.substr(position, word.size()) != word) {
    return false;
  }
  const size_t after = position + word.size();
  return after >= text.size() ||
         std::string_view(" \t\r\n,]}#:").find(text[after]) != std::string_view::npos;
}

int open_parentheses(std::string_view text) {
  int balance = 0;
  bool quoted = false;
  for (const char letter : text) {
    if (letter == '\'') {
      quoted = !quoted;
    } else if (!quoted) {
      balance += letter == '(' ? 1 : letter == ')' ? -1 : 0;
    }
  }
  return balance;
}

}  // namespace lockstep
