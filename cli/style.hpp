#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/printable.hpp"
#include "model/core/units.hpp"

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

/// "112", "0.47", "114 k", "1.28 M", "3.2e-05": four significant digits at most.
std::string number_text(double number);
/// "774 M", "1.56 B", "1,024".
std::string count_text(int64_t count);
/// "1 rank", "3 ranks".
std::string plural(int64_t count, std::string_view noun);
/// "94 %"; "<1 %" for what is not nothing.
std::string percent_text(double fraction);

}  // namespace lockstep::cli
