#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "io/scenario/load/load.hpp"

namespace lockstep::cli {

/// Where a scenario comes from, so that it can be read again with other settings.
struct CaseSource {
  std::string path;
  std::optional<std::string> scenario_case;
  std::vector<std::string> set;  ///< `a.b=v`
  /// "cluster.calibration": "--calibration", of those in `set` that another option gave.
  std::map<std::string, std::string> option_of_key{};
  FileReader reader = read_file_from_disk;

  LoadedScenarios load(const std::vector<std::string>& more = {}) const;
};

/// `FILE` or `FILE:CASE`: what follows the last colon is a case, unless a file of that whole name
/// exists.
CaseSource split_case(const std::string& argument);

}  // namespace lockstep::cli
