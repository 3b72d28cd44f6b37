#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "io/scenario/load/load.hpp"
#include "io/scenario/reader/reader.hpp"
#include "io/table/number_file.hpp"

namespace lockstep {

/// Reads the files of numbers that `initial`, `inputs` and `targets` name. Cases that name the same
/// file share what it holds; each file is read once.
class InitialFiles {
 public:
  InitialFiles(Reader& reader, const FileReader& read_file, LoadedScenarios& loaded)
      : reader_(reader), read_file_(read_file), loaded_(loaded) {}

  /// Paths are relative to `folder`. What the files hold enters the scenario's digest.
  void read(Scenario& scenario, const std::filesystem::path& folder);

 private:
  struct KnownFile {
    NumberFile file;  ///< without numbers where it cannot be read
    uint64_t digest = 0;
  };

  void read_loader(LoaderSpec& loader);
  void read_model(ModelSpec& model);
  void read_layers(std::vector<LayerSpec>& layers);
  void read_all(std::vector<TensorValues>& all);
  void read_values(TensorValues& values);
  const KnownFile& file_of(const std::string& name, const SourcePlace& place);
  void note_fault(const Diagnostic& fault, const std::string& text);

  Reader& reader_;
  const FileReader& read_file_;
  LoadedScenarios& loaded_;
  std::map<std::string, KnownFile> files_;
  std::filesystem::path folder_;
  uint64_t digest_ = 0;
};

}  // namespace lockstep
