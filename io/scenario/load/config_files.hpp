#pragma once

#include <filesystem>

#include "io/scenario/load/load.hpp"
#include "io/scenario/reader/reader.hpp"

namespace lockstep {

/// Reads the JSON file that the argument `config` of a strategy names (DeepSpeedStrategy: a
/// configuration of DeepSpeed), and puts what it holds in the argument's place, so that a path and
/// the same keys in the scenario are one; and the file that `hf` of a model names. At most 1 MiB
/// and 32 levels.
class ConfigFiles {
 public:
  ConfigFiles(Reader& reader, const FileReader& read_file, LoadedScenarios& loaded)
      : reader_(reader), read_file_(read_file), loaded_(loaded) {}

  /// The path is relative to `folder`. What the file holds enters the scenario's digest.
  void read(Scenario& scenario, const std::filesystem::path& folder);

 private:
  struct Kind {
    std::string_view what;  ///< "a configuration of DeepSpeed"
  };

  void read_model(ModelSpec& model);
  /// What the file holds; nothing where it cannot be used, which is then complained about.
  std::optional<PlainValue> read_object(const std::string& path, const SourcePlace& place,
                                        const Kind& kind);

  Reader& reader_;
  const FileReader& read_file_;
  LoadedScenarios& loaded_;
  std::filesystem::path folder_;
  uint64_t digest_ = 0;
};

}  // namespace lockstep
