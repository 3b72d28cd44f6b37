#pragma once

#include <string>
#include <string_view>

#include "model/core/units.hpp"
#include "rehearsal/text/number_text.hpp"
#include "rehearsal/text/printable.hpp"

namespace lockstep::cli {

/// Output style: colours and bars of a terminal. Colours are marks until `printable_result`.
struct Style {
  bool colour = false;
  bool bars = false;
  bool progress = false;  ///< standard error is a terminal

  std::string error(std::string_view text) const { return painted("1;31", text); }
  std::string warning(std::string_view text) const { return painted("1;33", text); }
  std::string note(std::string_view text) const { return painted("1;36", text); }
  std::string good(std::string_view text) const { return painted("32", text); }
  std::string strong(std::string_view text) const { return painted("1", text); }

 private:
  std::string painted(const char* code, std::string_view text) const {
    return colour ? colour_mark(code) + std::string(text) + colour_mark("0") : std::string(text);
  }
};

/// Style for standard output: colour and bars on a terminal, no colour if NO_COLOR is set. Progress
/// where standard error is one.
Style style_of_terminal();

}  // namespace lockstep::cli
