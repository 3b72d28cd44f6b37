#include "tests/property/scenario_of.hpp"

#include <rapidcheck.h>

#include <variant>

#include "io/scenario/load/load.hpp"

namespace lockstep::test {

Scenario scenario_of(const std::string& text) {
  const FileReader reader = [&](const std::string&,
                                size_t) -> std::variant<std::string, FileError> { return text; };
  LoadedScenarios loaded = load_scenario_file("scenario.yaml", {}, reader);
  for (const auto& diagnostic : loaded.diagnostics) {
    RC_LOG() << diagnostic.message << "\n";
  }
  RC_ASSERT(loaded.ok());
  return loaded.scenarios.front();
}

}  // namespace lockstep::test
