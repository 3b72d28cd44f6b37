#pragma once

#include <string>
#include <string_view>

namespace lockstep::cli {

/// Text of others (a scenario, a file name, what a rank printed) as a terminal may show it: control
/// characters, also those of C1 and those that change the direction of text, and bytes that are no
/// UTF-8 become `\x1b` or `\u202e`. `keep`: characters that stay, such as a newline.
std::string printable(std::string_view text, std::string_view keep = "");

/// A result as a terminal or a file shows it: printable with its lines and tabs, and what Style has
/// painted in colour. Sequences of the terminal that come from anywhere else are not followed.
std::string printable_result(std::string_view text);

/// What Style puts where a colour begins (`code`: "1;31") or ends ("0"), for `printable_result`.
std::string colour_mark(std::string_view code);

}  // namespace lockstep::cli
