#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "model/program/chunk_store.hpp"

namespace lockstep {

/// Thrown when saved data cannot be read again.
class StoreError final : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Keeps chunks in a file without a name, which is gone when the process ends, however it ends. The
/// file is made when the first chunk comes; it only grows, up to a limit.
class TemporaryStore final : public ChunkStore {
 public:
  static constexpr int64_t usual_bytes_max = int64_t{64} << 30;
  /// TMPDIR of the environment, else /tmp.
  static std::string usual_folder();

  /// `begins`: called once, when the file has been made.
  explicit TemporaryStore(std::string folder = usual_folder(), int64_t bytes_max = usual_bytes_max,
                          std::function<void(const TemporaryStore&)> begins = nullptr)
      : folder_(std::move(folder)), bytes_max_(bytes_max), begins_(std::move(begins)) {}
  ~TemporaryStore() override;
  TemporaryStore(const TemporaryStore&) = delete;
  TemporaryStore& operator=(const TemporaryStore&) = delete;

  std::optional<uint64_t> save(std::span<const std::byte> bytes) override;
  /// Throws StoreError.
  void load(uint64_t number, std::span<std::byte> bytes) override;

  /// Why something could not be saved or read, and what helps; empty: all could.
  const std::string& failure() const { return failure_; }
  /// Saved until now.
  int64_t bytes() const { return static_cast<int64_t>(end_); }
  int64_t bytes_max() const { return bytes_max_; }
  const std::string& folder() const { return folder_; }

 private:
  void fail(int reason);

  std::string folder_;
  int64_t bytes_max_;
  std::function<void(const TemporaryStore&)> begins_;
  std::string failure_;
  int descriptor_ = -1;
  uint64_t end_ = 0;
};

}  // namespace lockstep
