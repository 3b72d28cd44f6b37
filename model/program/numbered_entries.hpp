#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

namespace lockstep {

/// Entries by a number that whoever adds them counts up. They are found without hashing, and each
/// stays where it is until it is erased. A number whose neighbours are gone as well costs an eighth
/// of a byte.
template <class Entry>
class NumberedEntries {
 public:
  NumberedEntries() = default;
  NumberedEntries(const NumberedEntries&) = delete;
  NumberedEntries& operator=(const NumberedEntries&) = delete;
  ~NumberedEntries() {
    for (const Page& page : pages_) {
      for (size_t at = 0; page && at < of_page; ++at) {
        if (page[at] != none) {
          std::destroy_at(entry_in(page[at]));
        }
      }
    }
  }

  /// Null: none has this number.
  Entry* find(uint32_t number) const {
    const size_t page = number / of_page;
    if (page >= pages_.size() || !pages_[page]) {
      return nullptr;
    }
    const uint32_t place = pages_[page][number % of_page];
    return place == none ? nullptr : entry_in(place);
  }
  /// A fresh entry; the number is one that none has.
  Entry& add(uint32_t number) {
    const size_t page = number / of_page;
    if (page >= pages_.size()) {
      pages_.resize(page + 1);
      used_.resize(page + 1);
    }
    if (!pages_[page]) {
      pages_[page] = std::make_unique_for_overwrite<uint32_t[]>(of_page);
      std::uninitialized_fill_n(pages_[page].get(), of_page, none);
    }
    const uint32_t place = take();
    pages_[page][number % of_page] = place;
    ++used_[page];
    ++size_;
    return *::new (memory_of(place)) Entry{};
  }
  void erase(uint32_t number) {
    const size_t page = number / of_page;
    uint32_t& place = pages_[page][number % of_page];
    std::destroy_at(entry_in(place));
    give_back(place);
    place = none;
    --size_;
    if (--used_[page] == 0) {
      pages_[page].reset();
    }
  }
  size_t size() const { return size_; }

 private:
  static constexpr size_t of_page = 64;
  static constexpr size_t of_block = 32;
  static constexpr uint32_t none = 0xffffffffu;

  using Page = std::unique_ptr<uint32_t[]>;  ///< places of numbers that follow each other
  /// Memory of an entry; while there is none, the next free place stands there.
  struct Place {
    alignas(Entry) std::byte memory[sizeof(Entry)];
  };
  static_assert(sizeof(Entry) >= sizeof(uint32_t));

  std::byte* memory_of(uint32_t place) const {
    return blocks_[place / of_block][place % of_block].memory;
  }
  Entry* entry_in(uint32_t place) const {
    return std::launder(reinterpret_cast<Entry*>(memory_of(place)));
  }
  uint32_t take() {
    if (first_free_ == none) {
      const auto first = static_cast<uint32_t>(blocks_.size() * of_block);
      blocks_.push_back(std::make_unique_for_overwrite<Place[]>(of_block));
      for (size_t at = of_block; at > 0; --at) {
        give_back(first + static_cast<uint32_t>(at) - 1);
      }
    }
    const uint32_t place = first_free_;
    std::memcpy(&first_free_, memory_of(place), sizeof(first_free_));
    return place;
  }
  void give_back(uint32_t place) {
    std::memcpy(memory_of(place), &first_free_, sizeof(first_free_));
    first_free_ = place;
  }

  std::vector<Page> pages_;
  std::vector<uint8_t> used_;  ///< by page
  std::vector<std::unique_ptr<Place[]>> blocks_;
  uint32_t first_free_ = none;
  size_t size_ = 0;
};

}  // namespace lockstep
