#include "model/strategy/exchange/negotiation/response_cache.hpp"

#include <algorithm>
#include <ranges>

namespace lockstep {

std::optional<size_t> ResponseCache::position_of(const TensorRequest& request) const {
  const auto found = std::ranges::find(entries_, request, &Entry::own);
  return found == entries_.end() ? std::nullopt : std::optional<size_t>(found - entries_.begin());
}

std::optional<size_t> ResponseCache::outdated_by(const TensorRequest& request) const {
  const auto found = std::ranges::find_if(entries_, [&request](const Entry& entry) {
    return entry.own.name == request.name && entry.own != request;
  });
  return found == entries_.end() ? std::nullopt : std::optional<size_t>(found - entries_.begin());
}

void ResponseCache::put(const TensorResponse& response, const TensorRequest& own) {
  const RequestKind kind = own.name.kind;
  if (capacity_ == 0 || (kind != RequestKind::all_reduce && kind != RequestKind::all_gather)) {
    return;
  }
  const auto same_name = [&own](const Entry& entry) { return entry.own.name == own.name; };
  auto place = std::ranges::find_if(entries_, same_name);
  if (place == entries_.end() && entries_.size() == capacity_) {
    place = std::ranges::min_element(entries_, {}, &Entry::used);
  }
  if (place == entries_.end()) {
    place = entries_.insert(place, Entry());
  }
  *place = {response, own, ++uses_};
}

void ResponseCache::erase(const std::vector<size_t>& positions) {
  for (const size_t position : std::views::reverse(positions)) {
    entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(position));
  }
}

}  // namespace lockstep
