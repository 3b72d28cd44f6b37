#include "model/program/chunk_memory.hpp"

#include <span>
#include <utility>

namespace lockstep {

ChunkMemory::ChunkMemory(std::shared_ptr<ChunkStore> store, int64_t bytes_max)
    : store_(std::move(store)), bytes_max_(bytes_max) {}

void ChunkMemory::add(Chunk& chunk) {
  if (store_ != nullptr && !chunk.may_spill) {
    chunk.may_spill = true;
    enter(chunk);
  }
}

std::shared_ptr<Chunk> ChunkMemory::one_of_alike(
    std::shared_ptr<Chunk> chunk, uint64_t hash,
    const std::function<bool(const Chunk& left, const Chunk& right)>& are_alike) {
  if (store_ == nullptr) {
    return chunk;
  }
  std::weak_ptr<Chunk>& known = by_content_[hash];
  std::shared_ptr<Chunk> before = known.lock();
  const bool can_compare = before != nullptr && before->bytes != nullptr;
  if (can_compare && before->size == chunk->size && are_alike(*before, *chunk)) {
    return before;
  }
  known = chunk;
  return chunk;
}

// The newest stays whatever the bound: it is about to be used.
void ChunkMemory::enter(Chunk& chunk) {
  resident_.push_back(&chunk);
  bytes_ += chunk.size;
  while (bytes_ > bytes_max_ && resident_.size() > 1 && !store_failed_) {
    Chunk& oldest = *resident_.front();
    if (oldest.stored == 0) {
      const auto number = store_->save({oldest.bytes.get(), static_cast<size_t>(oldest.size)});
      store_failed_ = !number;
      if (store_failed_) {
        return;
      }
      oldest.stored = *number + 1;
    }
    oldest.bytes.reset();
    bytes_ -= oldest.size;
    resident_.pop_front();
  }
}

void ChunkMemory::load(Chunk& chunk) {
  if (chunk.bytes != nullptr) {
    return;
  }
  const auto size = static_cast<size_t>(chunk.size);
  std::shared_ptr<std::byte[]> bytes(new std::byte[size]);
  store_->load(chunk.stored - 1, {bytes.get(), size});
  chunk.bytes = std::move(bytes);
  enter(chunk);
}

void ChunkMemory::load_to_change(Chunk& chunk) {
  load(chunk);
  chunk.stored = 0;
}

void ChunkMemory::remove(Chunk& chunk) {
  if (chunk.may_spill && chunk.bytes != nullptr) {
    std::erase(resident_, &chunk);
    bytes_ -= chunk.size;
  }
  chunk.may_spill = false;
}

}  // namespace lockstep
