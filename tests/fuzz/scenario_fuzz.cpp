#include <cstddef>
#include <cstdint>
#include <string>

#include "io/scenario/load/load.hpp"

/// Any bytes as a scenario file: loading ends, with scenarios or with complaints that render.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto read_file = [&](const std::string& path,
                             size_t) -> std::variant<std::string, FileError> {
    if (path == "s.yaml") {
      return text;
    }
    return FileError{"file not found"};
  };
  const LoadedScenarios loaded = load_scenario_file("s.yaml", {}, read_file);
  if (loaded.ok() == loaded.scenarios.empty()) {
    __builtin_trap();
  }
  if (!loaded.ok() && render(loaded.diagnostics, loaded.sources).empty()) {
    __builtin_trap();
  }
  return 0;
}
