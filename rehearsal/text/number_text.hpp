#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::cli {

/// "112", "0.47", "114 k", "1.28 M", "3.2e-05": four significant digits at most.
std::string number_text(double number);
/// "774 M", "1.56 B", "1,024".
std::string count_text(int64_t count);
/// "1 rank", "3 ranks".
std::string plural(int64_t count, std::string_view noun);
/// "94 %"; "<1 %" for what is not nothing.
std::string percent_text(double fraction);

}  // namespace lockstep::cli
