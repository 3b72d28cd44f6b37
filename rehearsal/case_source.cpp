#include "rehearsal/case_source.hpp"

#include <filesystem>

#include "io/scenario/reader/scalar.hpp"

namespace lockstep::cli {

LoadedScenarios CaseSource::load(const std::vector<std::string>& more) const {
  LoadOptions options{scenario_case, set, option_of_key};
  options.set.insert(options.set.end(), more.begin(), more.end());
  LoadedScenarios loaded = load_scenario_file(path, options, reader);
  for (Scenario& scenario : loaded.scenarios) {
    scenario.settings = options.set;
  }
  return loaded;
}

CaseSource split_case(const std::string& argument) {
  CaseSource source;
  source.path = argument;
  std::error_code ignored;
  const size_t colon = argument.rfind(':');
  if (colon == std::string::npos || colon == 0 || std::filesystem::exists(argument, ignored)) {
    return source;
  }
  const std::string name = argument.substr(colon + 1);
  if (is_name(name)) {
    source.path = argument.substr(0, colon);
    source.scenario_case = name;
  }
  return source;
}

}  // namespace lockstep::cli
