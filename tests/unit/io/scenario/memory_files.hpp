#pragma once

#include <map>
#include <string>

#include "io/scenario/load/load.hpp"

namespace lockstep::test {

/// Loads the first of some files that exist in memory only.
inline LoadedScenarios load_files(const std::map<std::string, std::string>& files,
                                  const std::string& first, const LoadOptions& options = {}) {
  return load_scenario_file(
      first, options, [&](const std::string& path, size_t) -> std::variant<std::string, FileError> {
        const auto found = files.find(path);
        if (found == files.end()) {
          return FileError{"file not found"};
        }
        return found->second;
      });
}

inline LoadedScenarios load_text(const std::string& text, const LoadOptions& options = {}) {
  return load_files({{"s.yaml", text}}, "s.yaml", options);
}

}  // namespace lockstep::test
