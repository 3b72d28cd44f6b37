#pragma once

#include <cstdint>
#include <string>

namespace lockstep::cli {

/// The right of this process to leave the files of one rank in a folder. The system takes it back
/// when the process ends, however it ends.
class FolderLock {
 public:
  /// Throws RealRunFailed where another process has it, and names that. Where the file system has
  /// no locks, everybody gets it.
  FolderLock(const std::string& folder, int32_t rank);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_ = -1;
};

/// The file in that folder whose bytes are locked: byte N for rank N.
inline constexpr const char* folder_lock_name = ".lockstep-lock";

}  // namespace lockstep::cli
