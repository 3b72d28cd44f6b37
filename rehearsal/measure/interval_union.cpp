#include "rehearsal/measure/interval_union.hpp"

#include <algorithm>

namespace lockstep::cli {

Time length_of_union(std::vector<std::pair<Time, Time>> intervals) {
  std::ranges::sort(intervals);
  Time length{};
  Time covered{};
  for (const auto& [begin, end] : intervals) {
    length += std::max(Time{}, end - std::max(begin, covered));
    covered = std::max(covered, end);
  }
  return length;
}

}  // namespace lockstep::cli
