#pragma once

#include <cstdint>
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
/// file is made when the first chunk comes; it only grows.
class TemporaryStore final : public ChunkStore {
 public:
  /// TMPDIR of the environment, else /tmp.
  static std::string usual_folder();

  explicit TemporaryStore(std::string folder = usual_folder()) : folder_(std::move(folder)) {}
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

 private:
  void fail(int reason);

  std::string folder_;
  std::string failure_;
  int descriptor_ = -1;
  uint64_t end_ = 0;
};

}  // namespace lockstep
