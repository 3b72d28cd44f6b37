#include "model/program/repetition.hpp"

namespace lockstep {

namespace {

void count_entries(const std::vector<RepeatedPeriods>& all, size_t begin, size_t end, int64_t times,
                   const std::function<void(int64_t, int64_t, int64_t)>& count) {
  for (size_t entry = begin; entry < end; ++entry) {
    const RepeatedPeriods& each = all[entry];
    if (each.entries_from) {
      count_entries(all, *each.entries_from, entry, times * each.times, count);
    } else {
      count(each.first, each.end, times * each.times);
    }
  }
}

}  // namespace

void for_each_repeated(const std::vector<RepeatedPeriods>& all,
                       const std::function<void(int64_t, int64_t, int64_t)>& count) {
  count_entries(all, 0, all.size(), 1, count);
}

}  // namespace lockstep
