#include "model/strategy/exchange/negotiation/response_cache.hpp"

#include <algorithm>
#include <ranges>

namespace lockstep {

std::optional<size_t> ResponseCache::position_of(const TensorRequest& request) const {
  const auto found = position_.find(request.name);
  return found != position_.end() && entries_[found->second].own == request
             ? std::optional(found->second)
             : std::nullopt;
}

std::optional<size_t> ResponseCache::outdated_by(const TensorRequest& request) const {
  const auto found = position_.find(request.name);
  return found != position_.end() && entries_[found->second].own != request
             ? std::optional(found->second)
             : std::nullopt;
}

void ResponseCache::put(const TensorResponse& response, const TensorRequest& own) {
  const RequestKind kind = own.name.kind;
  if (capacity_ == 0 || (kind != RequestKind::all_reduce && kind != RequestKind::all_gather)) {
    return;
  }
  const auto known = position_.find(own.name);
  size_t place = known == position_.end() ? entries_.size() : known->second;
  if (place == capacity_) {
    const auto oldest = std::ranges::min_element(entries_, {}, &Entry::used);
    position_.erase(oldest->own.name);
    place = static_cast<size_t>(oldest - entries_.begin());
  } else if (place == entries_.size()) {
    entries_.emplace_back();
  }
  position_[own.name] = place;
  entries_[place] = {response, own, ++uses_};
}

void ResponseCache::erase(const std::vector<size_t>& positions) {
  for (const size_t position : std::views::reverse(positions)) {
    entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(position));
  }
  position_.clear();
  for (size_t place = 0; place < entries_.size(); ++place) {
    position_[entries_[place].own.name] = place;
  }
}

}  // namespace lockstep
