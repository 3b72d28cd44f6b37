#include "cli/render/timeline/placement.hpp"

#include <algorithm>
#include <tuple>

namespace lockstep::cli {

bool TrackPlacement::holds_others(Span::Kind kind) {
  return kind != Span::Kind::operation && kind != Span::Kind::wait;
}

// A statement may hold the operation of the host that it makes, never another statement.
bool TrackPlacement::fits(std::vector<Open>& stack, const Span& span) {
  while (!stack.empty() && stack.back().finish <= span.start) {
    stack.pop_back();
  }
  return stack.empty() || (stack.back().holds_others && span.finish <= stack.back().finish);
}

int32_t TrackPlacement::place(const Span& span) {
  int32_t track = span.track;
  while (!fits(stacks_[track], span)) {
    track += overflow_step;
  }
  stacks_[track].push_back({span.finish, holds_others(span.kind)});
  return track;
}

void sort_by_start(std::vector<Span>& spans) {
  std::ranges::stable_sort(spans, [](const Span& left, const Span& right) {
    return std::tuple(left.start, left.kind) < std::tuple(right.start, right.kind);
  });
}

}  // namespace lockstep::cli
