#include "rehearsal/launch/temporary_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "rehearsal/launch/real_run.hpp"

namespace lockstep::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* prefix = "lockstep-";
constexpr const char* owner = ".owner";
constexpr size_t random_letters = 6;

std::string place() {
  const char* named = std::getenv("TMPDIR");
  return named == nullptr || *named == '\0' ? "/tmp" : named;
}

// A folder of this user, no link to one, with a name as mkdtemp gives it.
bool may_be_ours(const fs::path& folder) {
  const std::string name = folder.filename().string();
  struct stat status {};
  return name.starts_with(prefix) && name.size() == std::strlen(prefix) + random_letters &&
         lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == geteuid() && (status.st_mode & 077) == 0;
}

// Whoever made the folder holds the lock for as long as it lives: one who can take it is alone.
void remove_if_left(const fs::path& folder) {
  const int lock = open((folder / owner).c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (lock < 0) {
    return;
  }
  if (flock(lock, LOCK_EX | LOCK_NB) == 0) {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }
  close(lock);
}

void remove_left_ones() {
  std::error_code error;
  for (fs::directory_iterator entry(place(), error), end; !error && entry != end;
       entry.increment(error)) {
    if (may_be_ours(entry->path())) {
      remove_if_left(entry->path());
    }
  }
}

// It gets its name once it is locked: no other finds it without its owner.
int locked_owner(const std::string& folder) {
  const std::string unnamed = folder + "/" + owner + ".new";
  const int lock = open(unnamed.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (lock >= 0 && (flock(lock, LOCK_EX | LOCK_NB) != 0 ||
                    std::rename(unnamed.c_str(), (folder + "/" + owner).c_str()) != 0)) {
    close(lock);
    std::remove(unnamed.c_str());
    return -1;  // a file system without locks: nobody will remove what is left here
  }
  return lock;
}

}  // namespace

TemporaryFolder::TemporaryFolder()
    : path_(place() + "/" + prefix + std::string(random_letters, 'X')) {
  remove_left_ones();
  if (mkdtemp(path_.data()) == nullptr) {
    throw RealRunFailed(fmt::format(
        "no folder for the ranks' reports: {}: {}; set TMPDIR to a folder that can be written",
        path_, std::strerror(errno)));
  }
  lock_ = locked_owner(path_);
}

TemporaryFolder::~TemporaryFolder() {
  if (!kept_) {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  if (lock_ >= 0) {
    close(lock_);
  }
}

const std::string& TemporaryFolder::keep() {
  kept_ = true;
  std::remove((path_ + "/" + owner).c_str());
  return path_;
}

}  // namespace lockstep::cli
