#include "cli/missing_argument.hpp"

#include <algorithm>
#include <string_view>

namespace lockstep::cli {

std::string missing_argument(const Request& request) {
  constexpr std::string_view of_files[] = {"run",  "verify", "exec", "compare",
                                           "test", "sweep",  "plan"};
  const bool needs_file = std::ranges::count(of_files, request.command) > 0;
  if (needs_file && request.arguments.empty()) {
    return request.sweep.merge ? "the files to merge are missing" : "a scenario file is missing";
  }
  if (request.command == "collective" && request.arguments.empty()) {
    return "a collective is missing, such as all_reduce";
  }
  if (request.command == "collective" && request.collective.cluster.empty()) {
    return "--cluster is missing";
  }
  if (request.command == "compare" && request.reports.empty()) {
    return "--reports FOLDER is missing: where the ranks left their reports";
  }
  return "";
}

}  // namespace lockstep::cli
