#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <unordered_map>

#include "model/core/op.hpp"
#include "model/core/random.hpp"

namespace lockstep::sim {

class OwnedListsPool;

/// The lists of operations that outlive their submission, all but the tickets that they come after.
/// One allocation each, since a rank has a thousand of them in flight: what the views show lies
/// directly behind the object.
class OwnedLists {
 public:
  OwnedLists(const OwnedLists&) = delete;
  OwnedLists& operator=(const OwnedLists&) = delete;
  static void operator delete(void* memory) { ::operator delete(memory); }

 private:
  friend class OwnedListsPool;

  OwnedLists(const OpLists& lists, OwnedListsPool* pool) : pool_(pool) {
    auto* behind = reinterpret_cast<std::byte*>(this + 1);
    views_.reads = put(behind, lists.reads);
    views_.writes = put(behind, lists.writes);
    views_.splits = put(behind, lists.splits);
    views_.scalars = put(behind, lists.scalars);
  }
  static OwnedLists* make(const OpLists& lists, OwnedListsPool* pool) {
    const size_t bytes = lists.reads.size_bytes() + lists.writes.size_bytes() +
                         lists.splits.size_bytes() + lists.scalars.size_bytes();
    return ::new (::operator new(sizeof(OwnedLists) + bytes)) OwnedLists(lists, pool);
  }

  template <class Element>
  static std::span<const Element> put(std::byte*& to, std::span<const Element> elements) {
    static_assert(alignof(Element) <= alignof(OpLists) && std::is_trivially_copyable_v<Element>);
    auto* first = reinterpret_cast<Element*>(to);
    std::uninitialized_copy(elements.begin(), elements.end(), first);
    to += elements.size_bytes();
    return {first, elements.size()};
  }

  OpLists views_;         ///< first: it is found by them
  OwnedListsPool* pool_;  ///< null: of one operation alone
  uint64_t hash_ = 0;
  uint64_t holders_ = 1;
};

/// Ranks that run the same program submit the same lists: each is kept once.
class OwnedListsPool {
 public:
  /// `shares`: looks for lists with the same content, which pays where many ranks have them.
  void share(bool shares) { shares_ = shares; }

  /// Until give_back().
  const OpLists* take(const OpLists& lists) {
    if (!shares_) {
      return &OwnedLists::make(lists, nullptr)->views_;
    }
    const uint64_t hash = hash_of(lists);
    OwnedLists*& known = by_content_[hash];
    if (known == nullptr) {
      known = OwnedLists::make(lists, this);
      known->hash_ = hash;
    } else if (are_equal(known->views_, lists)) {
      ++known->holders_;
    } else {
      return &OwnedLists::make(lists, nullptr)->views_;
    }
    return &known->views_;
  }
  /// Null: nothing.
  static void give_back(const OpLists* views) {
    static_assert(std::is_standard_layout_v<OwnedLists>);
    auto* lists = reinterpret_cast<OwnedLists*>(const_cast<OpLists*>(views));
    if (lists == nullptr) {
      return;
    }
    if (lists->pool_ == nullptr) {
      delete lists;
    } else {
      lists->pool_->forget_holder(lists);
    }
  }

 private:
  static uint64_t hash_of(const OpLists& lists) {
    uint64_t hash = random_key(lists.reads.size(), lists.writes.size());
    for (const auto slices : {lists.reads, lists.writes}) {
      for (const Slice& slice : slices) {
        const uint64_t which =
            uint64_t{slice.buffer.value} << 8 | static_cast<uint64_t>(slice.dtype);
        hash = random_key(random_key(hash, which), static_cast<uint64_t>(slice.begin) << 32 ^
                                                       static_cast<uint64_t>(slice.elements));
      }
    }
    for (const int64_t split : lists.splits) {
      hash = random_key(hash, static_cast<uint64_t>(split));
    }
    for (const double scalar : lists.scalars) {
      hash = random_key(hash, std::bit_cast<uint64_t>(scalar));
    }
    return hash;
  }

  static bool are_equal(const OpLists& left, const OpLists& right) {
    const auto same_bits = [](double a, double b) {
      return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
    };
    return std::ranges::equal(left.reads, right.reads) &&
           std::ranges::equal(left.writes, right.writes) &&
           std::ranges::equal(left.splits, right.splits) &&
           std::ranges::equal(left.scalars, right.scalars, same_bits);
  }

  void forget_holder(OwnedLists* lists) {
    if (--lists->holders_ == 0) {
      by_content_.erase(lists->hash_);
      delete lists;
    }
  }

  bool shares_ = false;
  std::unordered_map<uint64_t, OwnedLists*> by_content_;  ///< looked up only; held by its holders
};

}  // namespace lockstep::sim
