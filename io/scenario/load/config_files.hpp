#pragma once

#include <filesystem>

#include "io/scenario/load/load.hpp"
#include "io/scenario/reader/reader.hpp"

namespace lockstep {

/// Reads the JSON file that the argument `config` of a strategy names (DeepSpeedStrategy: a
/// configuration of DeepSpeed), and puts what it holds in the argument's place, so that a path and
/// the same keys in the scenario are one. At most 1 MiB and 32 levels.
class ConfigFiles {
 public:
  ConfigFiles(Reader& reader, const FileReader& read_file, LoadedScenarios& loaded)
      : reader_(reader), read_file_(read_file), loaded_(loaded) {}

  /// The path is relative to `folder`. What the file holds enters the scenario's digest.
  void read(Scenario& scenario, const std::filesystem::path& folder);

 private:
  Reader& reader_;
  const FileReader& read_file_;
  LoadedScenarios& loaded_;
};

}  // namespace lockstep
