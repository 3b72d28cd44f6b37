#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace lockstep::cli {

/// What is wrong with a command line, and what to write instead.
struct Mistyped {
  std::string message;
  std::string remedy;  ///< empty: none better than the help
};

/// Looks for a command or an option that does not exist, before anything is parsed: the parser
/// would take the value of an unknown option for a file. Empty message: none found.
Mistyped find_mistyped(const CLI::App& application, const std::vector<std::string>& arguments);

}  // namespace lockstep::cli
