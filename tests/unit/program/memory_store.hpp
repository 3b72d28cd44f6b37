#pragma once

#include <algorithm>
#include <map>
#include <stdexcept>
#include <vector>

#include "model/program/chunk_store.hpp"

namespace lockstep::test {

/// A store that counts what is asked of it, and has room for so many chunks.
class MemoryStore final : public ChunkStore {
 public:
  explicit MemoryStore(size_t room = 1'000'000) : room_(room) {}

  std::optional<uint64_t> save(std::span<const std::byte> bytes) override {
    if (chunks.size() == room_) {
      return std::nullopt;
    }
    chunks.emplace_back(bytes.begin(), bytes.end());
    return chunks.size() - 1;
  }
  void load(uint64_t number, std::span<std::byte> bytes) override {
    if (chunks.at(number).size() != bytes.size()) {
      throw std::logic_error("a chunk is loaded with another size than it was saved with");
    }
    std::copy(chunks[number].begin(), chunks[number].end(), bytes.begin());
    ++loads[number];
  }

  std::vector<std::vector<std::byte>> chunks;
  std::map<uint64_t, int> loads;  ///< how often, by number

 private:
  size_t room_;
};

}  // namespace lockstep::test
