#include "rehearsal/measure/mean_sent.hpp"

#include <algorithm>
#include <map>

#include "rehearsal/measure/left_out_within.hpp"

namespace lockstep::cli {

namespace {

int64_t sent_by(const std::vector<TransferCount>& transfers) {
  int64_t bytes = 0;
  for (const TransferCount& transfer : transfers) {
    bytes += bytes_sent(transfer);
  }
  return bytes;
}

// Of the first operation that is not the main lane's.
std::optional<Time> begin_of_threads(const Journal& journal, int32_t rank) {
  std::optional<Time> begin;
  for (int32_t lane = 1; lane < journal.lanes(rank); ++lane) {
    const LaneJournal& rows = journal.lane(rank, lane);
    rows.for_each([&](const Row& row) {
      if (row.row == RowKind::op) {
        const Time issue = rows.completion(row.sequence).issue;
        begin = begin ? std::min(*begin, issue) : issue;
      }
    });
  }
  return begin;
}

}  // namespace

std::optional<MeanSent> mean_sent_in(const Journal& journal, int32_t rank,
                                     const StepSequence& sequence,
                                     const std::vector<StepMark>& marks,
                                     const std::vector<int64_t>& numbers) {
  std::map<size_t, int64_t> times_of_mark;
  for (const int64_t number : numbers) {
    if (number >= sequence.size()) {
      return std::nullopt;  // it had fewer batches
    }
    ++times_of_mark[sequence.at(number).mark];
  }
  int64_t bytes = 0;
  for (auto first = times_of_mark.begin(); first != times_of_mark.end();) {
    // Steps behind each other are read at once.
    auto last = first;
    auto next = std::next(first);
    while (next != times_of_mark.end() && next->first == last->first + 1 &&
           next->second == first->second) {
      last = next++;
    }
    const RowRange rows{marks[first->first].rows.begin, marks[last->first].rows.end};
    bytes += first->second * sent_by(transfers_of(journal, rank, rows,
                                                  left_out_within(journal, rank, marks, rows)));
    first = next;
  }
  const int64_t steps = std::ssize(numbers);
  return steps == 0 ? std::nullopt : std::optional(MeanSent{Bytes(bytes / steps), steps});
}

std::optional<MeanSent> mean_sent_beside(const Journal& journal, int32_t rank,
                                         const StepSequence& sequence,
                                         const std::vector<StepMark>& marks) {
  const std::optional<Time> begin = begin_of_threads(journal, rank);
  int64_t number = 0;
  while (begin && number < sequence.size() && sequence.at(number).finish < *begin) {
    ++number;
  }
  ++number;
  const int64_t steps = sequence.size() - number;
  if (!begin || steps <= 0) {
    return std::nullopt;
  }
  const RowRange rows{marks[sequence.at(number).mark].rows.begin, marks.back().rows.end};
  const int64_t bytes =
      sent_by(transfers_of(journal, rank, rows, all_left_out_within(journal, rank, rows)));
  return MeanSent{Bytes(bytes / steps), steps};
}

}  // namespace lockstep::cli
