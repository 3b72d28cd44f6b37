#include "io/journal/temporary_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace lockstep {

namespace {

// A system that cannot make a file without a name takes the name away from one.
int open_nameless(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) {
    return descriptor;
  }
  std::string name = folder + "/lockstep-XXXXXX";
  const int named = mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) {
    unlink(name.c_str());
  }
  return named;
}

}  // namespace

std::string TemporaryStore::usual_folder() {
  const char* folder = std::getenv("TMPDIR");
  return folder != nullptr && *folder != '\0' ? folder : "/tmp";
}

TemporaryStore::~TemporaryStore() {
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

void TemporaryStore::fail(int reason) {
  failure_ = fmt::format(
      "the journal does not fit in memory, and {} cannot store it ({}): set TMPDIR to a folder "
      "with "
      "room, or use fewer ranks or steps",
      folder_, std::strerror(reason));
}

std::optional<uint64_t> TemporaryStore::save(std::span<const std::byte> bytes) {
  if (end_ + bytes.size() > static_cast<uint64_t>(bytes_max_)) {
    failure_ = fmt::format(
        "the journal takes more than {} MiB of {}: use fewer ranks or steps, or let those that "
        "repeat be left out",
        bytes_max_ >> 20, folder_);
    return std::nullopt;
  }
  if (descriptor_ < 0) {
    descriptor_ = open_nameless(folder_);
    if (descriptor_ < 0) {
      fail(errno);
      return std::nullopt;
    }
    if (begins_) {
      begins_(*this);
    }
  }
  const uint64_t number = end_;
  for (uint64_t at = number; !bytes.empty();) {
    const ssize_t written = pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written < 0) {
      fail(errno);
      return std::nullopt;
    }
    at += static_cast<uint64_t>(written);
    bytes = bytes.subspan(static_cast<size_t>(written));
    end_ = at;
  }
  return number;
}

void TemporaryStore::load(uint64_t number, std::span<std::byte> bytes) {
  for (uint64_t at = number; !bytes.empty();) {
    const ssize_t got = pread(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      fail(got == 0 ? EIO : errno);
      throw StoreError(failure_);
    }
    at += static_cast<uint64_t>(got);
    bytes = bytes.subspan(static_cast<size_t>(got));
  }
}

}  // namespace lockstep
