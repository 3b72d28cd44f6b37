#include "backend/libtorch/content_identity.hpp"

#include <algorithm>
#include <iterator>

#include "model/core/random.hpp"

namespace lockstep::backend {

uint64_t ContentIdentities::of(const Slice& slice) const {
  const auto found = of_buffer_.find(slice.buffer.value);
  if (found == of_buffer_.end() || slice.elements == 0) {
    return 0;
  }
  uint64_t identity = 1;
  int64_t known_to = slice.begin;
  const int64_t end = slice.begin + slice.elements;
  auto stretch = found->second.upper_bound(slice.begin);
  stretch = stretch == found->second.begin() ? stretch : std::prev(stretch);
  for (; stretch != found->second.end() && known_to < end; ++stretch) {
    const auto& [begin, what] = *stretch;
    if (begin > known_to) {
      return 0;
    }
    if (what.end <= known_to) {
      continue;
    }
    const int64_t to = std::min(end, what.end);
    identity = random_key(random_key(identity, what.content),
                          static_cast<uint64_t>(what.offset + known_to - begin));
    identity = random_key(identity, static_cast<uint64_t>(to - known_to));
    known_to = to;
  }
  return known_to < end ? 0 : identity | 1;
}

// What is left of older stretches on either side stays.
void ContentIdentities::put(const Slice& to, uint64_t content, int64_t offset) {
  if (to.buffer == no_buffer || to.elements == 0) {
    return;
  }
  Stretches& stretches = of_buffer_[to.buffer.value];
  const int64_t end = to.begin + to.elements;
  auto next = stretches.upper_bound(to.begin);
  if (next != stretches.begin()) {
    --next;
  }
  while (next != stretches.end() && next->first < end) {
    const auto [begin, old] = *next;
    if (old.end <= to.begin) {
      ++next;
      continue;
    }
    next = stretches.erase(next);
    if (begin < to.begin) {
      stretches[begin] = {to.begin, old.content, old.offset};
    }
    if (old.end > end) {
      next =
          stretches.insert_or_assign(end, Stretch{old.end, old.content, old.offset + end - begin})
              .first;
    }
  }
  stretches[to.begin] = {end, content, offset};
}

void ContentIdentities::written(const Slice& to) { put(to, random_key(1, ++contents_), 0); }

void ContentIdentities::moved(const Slice& from, const Slice& to) {
  const uint64_t identity = of(from);
  if (identity == 0) {
    written(to);
    return;
  }
  const bool same_type = from.dtype == to.dtype;
  put(to, random_key(identity, same_type ? 0 : 1 + static_cast<uint64_t>(to.dtype)), 0);
}

void ContentIdentities::gathered(uint64_t communicator, uint64_t part, const Slice& whole) {
  if (part == 0) {
    written(whole);
    return;
  }
  put(whole, random_key(random_key(part, communicator), updates_), 0);
}

}  // namespace lockstep::backend
