#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace lockstep::sim {

/// Indices: a vector whose push_back compilers inline, which is called several times for each
/// operation.
class IndexList {
 public:
  void push_back(uint32_t index) {
    if (size_ == capacity_) [[unlikely]] {
      grow();
    }
    indices_[size_++] = index;
  }
  void pop_back() { --size_; }
  uint32_t back() const { return indices_[size_ - 1]; }
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  void clear() { size_ = 0; }
  /// Forgets the first ones.
  void drop_front(size_t count) {
    std::copy(indices_.get() + count, indices_.get() + size_, indices_.get());
    size_ -= count;
  }
  uint32_t* begin() { return indices_.get(); }
  uint32_t* end() { return indices_.get() + size_; }
  const uint32_t* begin() const { return indices_.get(); }
  const uint32_t* end() const { return indices_.get() + size_; }
  uint32_t operator[](size_t place) const { return indices_[place]; }
  /// One that is among them.
  void erase(uint32_t index) {
    uint32_t* const found = std::find(begin(), end(), index);
    std::copy(found + 1, end(), found);
    --size_;
  }

 private:
  [[gnu::noinline]] void grow() {
    constexpr size_t fewest = 4;
    capacity_ = std::max(fewest, 2 * capacity_);
    auto larger = std::make_unique<uint32_t[]>(capacity_);
    std::copy(begin(), end(), larger.get());
    indices_ = std::move(larger);
  }

  std::unique_ptr<uint32_t[]> indices_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace lockstep::sim
