#include "backend/rank_program/folder_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "rehearsal/launch/real_run.hpp"

namespace lockstep::cli {

namespace {

struct flock byte_of(int32_t rank) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = rank;
  lock.l_len = 1;
  return lock;
}

}  // namespace

FolderLock::FolderLock(const std::string& folder, int32_t rank)
    : descriptor_(open((folder + "/" + folder_lock_name).c_str(),
                       O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644)) {
  struct flock wanted = byte_of(rank);
  if (descriptor_ < 0 || fcntl(descriptor_, F_SETLK, &wanted) == 0 ||
      (errno != EACCES && errno != EAGAIN)) {
    return;
  }
  struct flock held = byte_of(rank);
  const bool is_known = fcntl(descriptor_, F_GETLK, &held) == 0 && held.l_type != F_UNLCK;
  close(descriptor_);
  throw RealRunFailed(fmt::format(
      "{} leaves the report of rank {} in {}: wait until it has ended, or give this run another "
      "folder by --report-folder",
      is_known ? fmt::format("process {}", held.l_pid) : "another process", rank, folder));
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

}  // namespace lockstep::cli
