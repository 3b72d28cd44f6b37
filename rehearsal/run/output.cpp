#include "rehearsal/run/output.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

namespace lockstep::cli {

namespace {

std::string remedy_for(int reason) {
  switch (reason) {
    case ENOSPC:
    case EDQUOT: return "make room on that disk, or name a file on another";
    case ENOENT:
    case ENOTDIR: return "make its folder first, or name a file in one that exists";
    case EACCES:
    case EPERM:
    case EROFS: return "name a file in a folder that you may write to";
    default: return "name another file";
  }
}

[[noreturn]] void fail(const std::string& path) {
  const int reason = errno;
  throw OutputError(
      fmt::format("cannot write {}: {}\n   = {}", path, std::strerror(reason), remedy_for(reason)));
}

// Resolves links: writing through a link keeps the link.
std::string target_of(const std::string& path) {
  std::error_code error;
  const std::filesystem::path target = std::filesystem::weakly_canonical(path, error);
  const std::string name = error ? path : target.string();
  const std::filesystem::file_status status = std::filesystem::status(name, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw OutputError(
        fmt::format("cannot write {}: it is not a regular file\n   = name another file", path));
  }
  return name;
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path)
    : path_(target_of(path)), temporary_(path_ + ".XXXXXX") {
  std::vector<char> name(temporary_.begin(), temporary_.end());
  name.push_back('\0');
  const int descriptor = mkstemp(name.data());
  if (descriptor < 0) {
    fail(path_);
  }
  temporary_ = name.data();
  file_ = fdopen(descriptor, "w");
  if (file_ == nullptr) {
    fail(path_);
  }
}

AtomicFile::~AtomicFile() {
  if (file_ != nullptr) {
    std::fclose(file_);
    std::remove(temporary_.c_str());
  }
}

void AtomicFile::write(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size()) {
    fail(path_);
  }
}

void AtomicFile::commit() {
  // mkstemp makes a private file; a result is as public as any other.
  constexpr unsigned readable = 0644;
  if (fchmod(fileno(file_), readable) != 0 || std::fflush(file_) != 0 ||
      std::fclose(std::exchange(file_, nullptr)) != 0 ||
      std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int reason = errno;
    std::remove(temporary_.c_str());
    errno = reason;
    fail(path_);
  }
}

void check_writable(const std::string& path) {
  const std::filesystem::path target = target_of(path);
  const std::string folder = target.has_parent_path() ? target.parent_path().string() : ".";
  std::error_code ignored;
  if (std::filesystem::exists(folder, ignored) && !std::filesystem::is_directory(folder, ignored)) {
    errno = ENOTDIR;
    fail(path);
  }
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    fail(path);
  }
}

void write_atomically(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace lockstep::cli
