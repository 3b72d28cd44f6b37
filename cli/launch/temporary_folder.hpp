#pragma once

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "cli/launch/real_run.hpp"

namespace lockstep::cli {

/// A folder that is gone with all that lies in it when this is, unless it is kept.
class TemporaryFolder {
 public:
  /// Throws RealRunFailed.
  TemporaryFolder() : path_(place() + "/lockstep-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) {
      throw RealRunFailed(fmt::format(
          "no folder for the ranks' reports: {}: {}; set TMPDIR to a folder that can be written",
          path_, std::strerror(errno)));
    }
  }
  ~TemporaryFolder() {
    if (!kept_) {
      std::error_code ignored;
      std::filesystem::remove_all(path_, ignored);
    }
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  /// It stays when this is gone.
  const std::string& keep() {
    kept_ = true;
    return path_;
  }

 private:
  static std::string place() {
    const char* named = std::getenv("TMPDIR");
    return named == nullptr || *named == '\0' ? "/tmp" : named;
  }
  std::string path_;
  bool kept_ = false;
};

}  // namespace lockstep::cli
