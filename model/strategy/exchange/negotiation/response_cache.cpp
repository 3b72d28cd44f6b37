#include "model/strategy/exchange/negotiation/response_cache.hpp"

#include <algorithm>

namespace lockstep {

std::optional<size_t> ResponseCache::position_of(const TensorRequest& request) const {
  const auto found = std::ranges::find(entries_, request, &Entry::request);
  return found == entries_.end() ? std::nullopt : std::optional<size_t>(found - entries_.begin());
}

void ResponseCache::put(const TensorRequest& request) {
  const RequestKind kind = request.name.kind;
  if (capacity_ == 0 || (kind != RequestKind::all_reduce && kind != RequestKind::all_gather)) {
    return;
  }
  const auto same_name = [&request](const Entry& entry) {
    return entry.request.name == request.name;
  };
  auto place = std::ranges::find_if(entries_, same_name);
  if (place == entries_.end() && entries_.size() == capacity_) {
    place = std::ranges::min_element(entries_, {}, &Entry::used);
  }
  if (place == entries_.end()) {
    place = entries_.insert(place, Entry());
  }
  *place = {request, ++uses_};
}

}  // namespace lockstep
