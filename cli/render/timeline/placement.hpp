#pragma once

#include <map>
#include <optional>
#include <vector>

#include "cli/render/timeline/span.hpp"

namespace lockstep::cli {

/// Gives every span of one rank a track on which slices nest. What overlaps a span of its own
/// track without lying inside an outer one goes to an overflow track beside it.
class TrackPlacement {
 public:
  /// Overflow track `k` of a track is `k` times this further on.
  static constexpr int32_t overflow_step = 1 << 18;

  /// Spans come by their start; of those that begin together, the outer first.
  int32_t place(const Span& span);

 private:
  struct Open {
    Time finish{};
    bool holds_others = false;
  };
  static bool holds_others(Span::Kind kind);
  bool fits(std::vector<Open>& stack, const Span& span);

  std::map<int32_t, std::vector<Open>> stacks_;  ///< what is open on each track, the innermost last
};

/// Sorts for `TrackPlacement`.
void sort_by_start(std::vector<Span>& spans);

}  // namespace lockstep::cli
