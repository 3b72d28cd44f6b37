#include "rehearsal/sweep/sweep_log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "rehearsal/run/output.hpp"
#include "rehearsal/sweep/sweep_cases.hpp"

namespace lockstep::cli {

namespace {

[[noreturn]] void fail_log(const std::string& path) {
  const int reason = errno;
  throw OutputError(
      fmt::format("cannot write {} (--out): {}\n   = rows before this one are kept; "
                  "make room or name another file, and add --resume to go on",
                  path, std::strerror(reason)));
}

}  // namespace

SweepLog::SweepLog(const std::string& path, const SweepHeader& header, bool resume) : path_(path) {
  check_writable(path);
  constexpr mode_t readable = 0644;
  descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, readable);
  if (descriptor_ < 0) {
    fail_log(path);
  }
  try {
    if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      throw SweepError(fmt::format("another process writes to {}", path),
                       "wait until it has ended, or name another file by --out");
    }
    go_on(header, resume);
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

SweepLog::~SweepLog() { close(descriptor_); }

void SweepLog::go_on(const SweepHeader& header, bool resume) {
  before_ = read_sweep_file(path_);
  const bool is_empty = before_.fault.empty() && !before_.header && !before_.is_torn;
  if (!resume && !is_empty) {
    throw SweepError(fmt::format("{} is there already", path_),
                     "add --resume to go on with it, or name another file");
  }
  if (!before_.fault.empty()) {
    throw SweepError(fmt::format("{}: {}", path_, before_.fault),
                     "name the file of this sweep, or begin a new one by --out",
                     ExitCode::damaged_file);
  }
  if (before_.header) {
    if (const std::string differs = difference_of(*before_.header, header); !differs.empty()) {
      throw SweepError(fmt::format("{} is of a different sweep: {}", path_, differs),
                       "repeat the command that began it, or name another file by --out");
    }
    if (before_.header->shard != header.shard || before_.header->shards != header.shards) {
      throw SweepError(fmt::format("{} holds shard {}/{}, not {}/{}", path_, before_.header->shard,
                                   before_.header->shards, header.shard, header.shards),
                       "give each shard a file of its own");
    }
  }
  if (before_.is_torn && ftruncate(descriptor_, before_.whole_bytes) != 0) {
    fail_log(path_);
  }
  if (!before_.header) {
    append(line_of(header));
  }
}

void SweepLog::append(const std::string& line) {
  const std::string text = line + "\n";
  for (size_t done = 0; done < text.size();) {
    const ssize_t written = write(descriptor_, text.data() + done, text.size() - done);
    if (written < 0 && errno != EINTR) {
      fail_log(path_);
    }
    done += written > 0 ? static_cast<size_t>(written) : 0;
  }
}

std::string sweep_text(const SweepHeader& header, const std::map<int64_t, std::string>& lines) {
  std::string text = line_of(header) + "\n";
  for (const auto& [number, line] : lines) {
    text += line + "\n";
  }
  return text;
}

}  // namespace lockstep::cli
