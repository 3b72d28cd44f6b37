#include "properties/diagnosis/call_numbers.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace lockstep {

namespace {

// How many of the calls each entry of what was left out repeats, on whatever lane.
std::vector<int64_t> calls_left_out(const Journal& journal, int32_t rank,
                                    const std::vector<Call>& calls) {
  std::vector<int64_t> all(journal.repeated_on(rank, 0).size(), 0);
  for (int32_t lane = 0; lane < journal.lanes(rank); ++lane) {
    const auto calls_in = [&calls, lane](const RepeatedRows& rows) {
      return std::ranges::count_if(calls, [&rows, lane](const Call& call) {
        return call.ticket.lane.value == lane && rows.begin <= call.row && call.row < rows.end;
      });
    };
    const std::vector<int64_t> times = times_repeated(journal.repeated_on(rank, lane), calls_in);
    std::ranges::transform(times, all, all.begin(), std::plus());
  }
  return all;
}

}  // namespace

CallNumbers::CallNumbers(const Journal& journal, int32_t rank, uint64_t communicator) {
  const size_t entries = journal.repeated_on(rank, 0).size();
  if (entries == 0) {
    return;
  }
  const std::vector<Call> calls = calls_of(journal, rank, communicator);
  const std::vector<int64_t> times = calls_left_out(journal, rank, calls);
  for (size_t entry = 0; entry < entries; ++entry) {
    const auto behind = std::ranges::find_if(calls, [&](const Call& call) {
      const std::span<const RepeatedRows> on_lane =
          journal.repeated_on(rank, call.ticket.lane.value);
      return entry >= on_lane.size() || call.row >= on_lane[entry].row;
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
  const std::vector<int64_t> times = calls_left_out(journal, rank, there);
  return std::accumulate(times.begin(), times.end(), std::ssize(there));
}

}  // namespace lockstep
