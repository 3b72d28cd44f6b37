#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>

#include "model/program/chunk_store.hpp"

namespace lockstep {

/// A piece of a journal: in memory, in the store, or in both.
struct Chunk {
  std::shared_ptr<std::byte[]> bytes;  ///< null: only in the store
  int64_t size = 0;                    ///< of `bytes`
  uint64_t stored = 0;                 ///< its number in the store plus one; 0: not stored
  uint32_t settled = 0;                ///< of completions: how many have come
  bool may_spill = false;
  bool is_packed = false;  ///< completions in PackedCompletions
};

/// Holds the chunks of a journal to a bound of bytes: those that have been in memory longest go to
/// the store and come back when they are asked for.
class ChunkMemory {
 public:
  /// Null: everything stays in memory, and threads may use different chunks at once.
  ChunkMemory(std::shared_ptr<ChunkStore> store, int64_t bytes_max);

  /// Whether chunks can be spilled, by one thread at a time.
  bool has_store() const { return store_ != nullptr; }
  /// The chunk is complete: from now on it may be spilled. It keeps its address until `remove`.
  void add(Chunk& chunk);
  /// Ranks that do the same need what they did once: a complete chunk in memory with the same
  /// content, if this was asked for one before, else this one. `hash`: equal for equal contents.
  /// Without a store, where threads may use different chunks at once, it is always this one.
  std::shared_ptr<Chunk> one_of_alike(
      std::shared_ptr<Chunk> chunk, uint64_t hash,
      const std::function<bool(const Chunk& left, const Chunk& right)>& are_alike);
  /// Loads the chunk where it is spilled. Throws what the store throws.
  void load(Chunk& chunk);
  /// Its bytes are about to change: they are in memory, and what the store has of them is void.
  void load_to_change(Chunk& chunk);
  /// The chunk, which is in memory, may no longer be spilled.
  void remove(Chunk& chunk);

 private:
  void enter(Chunk& chunk);

  std::shared_ptr<ChunkStore> store_;
  int64_t bytes_max_;
  int64_t bytes_ = 0;
  std::deque<Chunk*> resident_;  ///< that may be spilled, oldest first
  bool store_failed_ = false;
  std::unordered_map<uint64_t, std::weak_ptr<Chunk>> by_content_;  ///< looked up only
};

}  // namespace lockstep
