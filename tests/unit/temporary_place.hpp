#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace lockstep::test {

/// A folder of its own that goes away with the test.
class TemporaryPlace {
 public:
  TemporaryPlace()
      : path_((std::filesystem::temp_directory_path() / "lockstep-test.XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) {
      throw std::filesystem::filesystem_error("no folder for a test", path_, std::error_code());
    }
  }
  ~TemporaryPlace() { std::filesystem::remove_all(path_); }
  TemporaryPlace(const TemporaryPlace&) = delete;
  TemporaryPlace& operator=(const TemporaryPlace&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace lockstep::test
