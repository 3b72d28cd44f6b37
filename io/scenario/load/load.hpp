#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "io/scenario/reader/diagnostic.hpp"
#include "model/scenario/scenario.hpp"

namespace lockstep {

struct LoadOptions {
  /// The case to load; absent: all of them. It must be absent where the file has no cases.
  std::optional<std::string> scenario_case;
  /// `a.b.c=VALUE`, each merged over every case in order; VALUE is YAML.
  std::vector<std::string> set;
  /// Options of the command line that are short for a key of `set`: messages name these instead.
  std::map<std::string, std::string> option_of_key{};
};

/// The cases of a file in its order (one without a name if it has none), or what is wrong with it:
/// either list is empty.
struct LoadedScenarios {
  std::vector<Scenario> scenarios;
  std::vector<Diagnostic> diagnostics;  ///< by file and line
  Sources sources;                      ///< for `render`
  std::vector<std::string> files{};     ///< that were read: the scenario, what it includes, values
  bool ok() const { return diagnostics.empty(); }
};

/// Why a file could not be read, as one sentence without a full stop.
struct FileError {
  std::string message;
};
/// Reads a file whole; given a path, and how many bytes are of interest at most.
using FileReader = std::function<std::variant<std::string, FileError>(const std::string&, size_t)>;

/// Reads, merges and checks a scenario file and what it includes.
LoadedScenarios load_scenario_file(const std::string& path, const LoadOptions& options = {});
/// Loads from another file system, for tests.
LoadedScenarios load_scenario_file(const std::string& path, const LoadOptions& options,
                                   const FileReader& read_file);
/// The file system itself. Directories, devices and unreadable files are errors.
std::variant<std::string, FileError> read_file_from_disk(const std::string& path,
                                                         size_t limit_bytes);

}  // namespace lockstep
