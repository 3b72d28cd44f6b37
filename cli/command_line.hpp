#pragma once

#include <string>
#include <variant>
#include <vector>

#include "cli/commands/commands.hpp"

namespace lockstep::cli {

/// The request that the arguments (without the program's name) make, or what to print instead:
/// help, the version, or what is wrong with them.
std::variant<Request, Answer> parse_command_line(const std::vector<std::string>& arguments);

/// Carries out a request. Writes files that it asks for, but prints nothing.
Answer execute(const Request& request, const Style& style);

/// The whole program but its process: parses, executes, and turns what is thrown into an answer.
Answer execute_command_line(const std::vector<std::string>& arguments, const Style& style);

/// "lockstep run 'a file.yaml'": the arguments as a shell would take them again.
std::string repeat_line(const std::vector<std::string>& arguments);

}  // namespace lockstep::cli
