#pragma once

#include <cstdio>
#include <stdexcept>
#include <string>

namespace lockstep::cli {

/// A file could not be written: the disk, the folder, the rights.
class OutputError final : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A file that appears under its name only when it is complete: written beside it, then renamed.
/// The old content stays until then, and is kept if writing fails.
class AtomicFile {
 public:
  /// Throws OutputError, as do all others.
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const std::string& text);
  void commit();

 private:
  std::string path_;
  std::string temporary_;
  std::FILE* file_ = nullptr;
};

/// Throws OutputError where AtomicFile would: before hours of work, rather than behind them.
void check_writable(const std::string& path);
void write_atomically(const std::string& path, const std::string& text);

}  // namespace lockstep::cli
