#include "model/strategy/exchange/negotiation/response_cache.hpp"

#include <algorithm>
#include <numeric>
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
  Entry& entry = entries_[place];
  if (entry.response != response || entry.own != own) {
    entry.response = response;
    entry.own = own;
    ++version_;
  }
  entry.used = ++uses_;
}

void ResponseCache::erase(const std::vector<size_t>& positions) {
  for (const size_t position : std::views::reverse(positions)) {
    entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(position));
  }
  ++version_;
  position_.clear();
  for (size_t place = 0; place < entries_.size(); ++place) {
    position_[entries_[place].own.name] = place;
  }
}

void ResponseCache::add_numbers(std::vector<int64_t>& numbers) const {
  numbers.push_back(version_);
  std::vector<size_t> positions(entries_.size());
  std::iota(positions.begin(), positions.end(), size_t{0});
  std::ranges::sort(positions, {}, [this](size_t position) { return entries_[position].used; });
  numbers.insert(numbers.end(), positions.begin(), positions.end());
}

bool ResponseCache::has_unnamed_from(int64_t number) const {
  return std::ranges::any_of(entries_, [number](const Entry& entry) {
    return entry.own.name.space == NameSpace::unnamed && entry.own.name.number >= number;
  });
}

}  // namespace lockstep
