#pragma once

#include <filesystem>

#include "io/scenario/load/load.hpp"
#include "io/scenario/reader/reader.hpp"

namespace lockstep {

/// Puts what `hostfile` of horovodrun or mpirun names in the place of their `hosts`. Paths are
/// relative to `folder`. What the file holds enters the scenario's digest.
class HostFile {
 public:
  HostFile(Reader& reader, const FileReader& read_file, LoadedScenarios& loaded)
      : reader_(reader), read_file_(read_file), loaded_(loaded) {}

  void read(Scenario& scenario, const std::filesystem::path& folder);

 private:
  bool add_line(std::string_view line, int number, const std::string& name,
                PlainValue::List& hosts);

  Reader& reader_;
  const FileReader& read_file_;
  LoadedScenarios& loaded_;
  SourcePlace place_{};
};

}  // namespace lockstep
