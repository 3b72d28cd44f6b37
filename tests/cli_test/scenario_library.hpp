#pragma once

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

#include "io/scenario/load/load.hpp"
#include "tests/cli_test/program.hpp"

namespace lockstep::test {

inline const std::string source_folder = LOCKSTEP_SOURCE_DIR;

inline std::string text_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// What `FILE` or `FILE:CASE` below the root of the source names.
struct NamedScenario {
  std::string problem;          ///< empty: the file is there, and so is the case
  std::set<std::string> codes;  ///< of the findings that it expects, of all cases if none is named
};

inline NamedScenario look_up_scenario(const std::string& name) {
  const size_t colon = name.find(':');
  const std::string file = source_folder + "/" + name.substr(0, colon);
  if (!std::filesystem::is_regular_file(file)) {
    return {"there is no file " + name.substr(0, colon), {}};
  }
  LoadOptions options;
  if (colon != std::string::npos) {
    options.scenario_case = name.substr(colon + 1);
  }
  const LoadedScenarios loaded = load_scenario_file(file, options);
  if (!loaded.ok()) {
    return {name + ": " + loaded.diagnostics.front().message, {}};
  }
  NamedScenario found;
  for (const Scenario& scenario : loaded.scenarios) {
    for (const Expectation& expectation : scenario.expectations) {
      if (expectation.kind == ExpectationKind::finding) {
        found.codes.insert(expectation.codes.begin(), expectation.codes.end());
      }
    }
  }
  return found;
}

}  // namespace lockstep::test
