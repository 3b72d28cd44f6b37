#include "sim/repeated_periods.hpp"

#include <algorithm>
#include <cstddef>

namespace lockstep::sim {

namespace {

// How often the first `length` of them come, one after the other.
int64_t turns_of_first(std::span<const RepeatedPeriods> all, size_t length) {
  size_t end = length;
  while (end < all.size() && all[end].does_as(all[end - length])) {
    ++end;
  }
  return static_cast<int64_t>(end / length);
}

}  // namespace

std::vector<RepeatedPeriods> repeated_periods(const KnownStates::Way& way, Time begin) {
  for (const auto& [transition, times] : way.before) {
    begin += transition->time * times;
  }
  std::vector<RepeatedPeriods> repeated;
  for (const auto& [transition, times] : way.cycle) {
    const bool goes_on = !repeated.empty() && times == 1 && repeated.back().times == 1 &&
                         repeated.back().end == transition->number &&
                         !transition->is_behind_left_out;
    if (goes_on) {
      ++repeated.back().end;
      repeated.back().time += transition->time;
    } else {
      repeated.push_back({transition->number, transition->number + 1, times, transition->time,
                          begin - transition->begin});
    }
    begin += transition->time * times;
  }
  return repeated;
}

Time total_of(std::span<const RepeatedPeriods> all) {
  Time total{};
  for (const RepeatedPeriods& each : all) {
    total += each.entries_from ? Time{} : each.total();
  }
  return total;
}

std::vector<RepeatedPeriods> folded(std::span<const RepeatedPeriods> all) {
  constexpr size_t longest = 32;
  std::vector<RepeatedPeriods> entries;
  while (!all.empty()) {
    size_t length = 1;
    int64_t turns = 1;
    for (size_t of = 1; of <= std::min(longest, all.size() / 2); ++of) {
      const int64_t again = turns_of_first(all, of);
      const bool is_better =
          again > 1 && again * std::ssize(all.first(of)) > turns * static_cast<int64_t>(length);
      length = is_better ? of : length;
      turns = is_better ? again : turns;
    }
    const size_t from = entries.size();
    entries.insert(entries.end(), all.begin(), all.begin() + static_cast<std::ptrdiff_t>(length));
    if (turns > 1) {
      const Time time = total_of(all.first(length));
      entries.push_back({0, 0, turns - 1, time, time, from});
    }
    all = all.subspan(length * static_cast<size_t>(turns));
  }
  return entries;
}

}  // namespace lockstep::sim
