#pragma once

#include <string>

namespace lockstep::cli {

/// A folder that is gone with all that lies in it when this is, unless it is kept. It is held by a
/// lock that ends with this process, however it ends: the next one that is made removes what
/// processes that were killed have left.
class TemporaryFolder {
 public:
  /// Throws RealRunFailed.
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  /// It stays when this is gone.
  const std::string& keep();

 private:
  std::string path_;
  int lock_ = -1;
  bool kept_ = false;
};

}  // namespace lockstep::cli
