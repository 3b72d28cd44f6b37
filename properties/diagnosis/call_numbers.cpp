#include "properties/diagnosis/call_numbers.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace lockstep {

namespace {

std::span<const RepeatedRows> repeated_of(const Journal& journal, int32_t rank) {
  return journal.repeated.empty()
             ? std::span<const RepeatedRows>()
             : std::span<const RepeatedRows>(journal.repeated[static_cast<size_t>(rank)]);
}

// Periods repeat rows of the first lane.
int64_t calls_in(const RepeatedRows& rows, const std::vector<Call>& calls) {
  return std::ranges::count_if(calls, [&rows](const Call& call) {
    return call.ticket.lane == LaneId{} && rows.begin <= call.row && call.row < rows.end;
  });
}

}  // namespace

CallNumbers::CallNumbers(const Journal& journal, int32_t rank, uint64_t communicator) {
  const std::span<const RepeatedRows> repeated = repeated_of(journal, rank);
  if (repeated.empty()) {
    return;
  }
  const std::vector<Call> calls = calls_of(journal, rank, communicator);
  const std::vector<int64_t> times = times_repeated(
      repeated, [&calls](const RepeatedRows& rows) { return calls_in(rows, calls); });
  for (size_t entry = 0; entry < repeated.size(); ++entry) {
    const auto behind = std::ranges::find_if(calls, [&](const Call& call) {
      return call.ticket.lane == LaneId{} && call.row >= repeated[entry].row;
    });
    left_out_.emplace_back(behind - calls.begin(), times[entry]);
  }
}

int64_t CallNumbers::of(int64_t position) const {
  int64_t number = position + 1;
  for (const auto& [before, calls] : left_out_) {
    number += before <= position ? calls : 0;
  }
  return number;
}

int64_t count_with_left_out(const Journal& journal, int32_t rank, const std::vector<Call>& calls,
                            SiteId site) {
  std::vector<Call> there;
  std::ranges::copy_if(calls, std::back_inserter(there),
                       [site](const Call& call) { return call.site == site; });
  const std::vector<int64_t> times =
      times_repeated(repeated_of(journal, rank),
                     [&there](const RepeatedRows& rows) { return calls_in(rows, there); });
  return std::accumulate(times.begin(), times.end(), std::ssize(there));
}

}  // namespace lockstep
