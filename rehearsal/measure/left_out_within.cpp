#include "rehearsal/measure/left_out_within.hpp"

#include <algorithm>
#include <span>

namespace lockstep::cli {

namespace {

void add_rows(std::span<const RepeatedRows> repeated, int32_t lane, int64_t entry, int64_t times,
              std::vector<RowsAgain>& again) {
  const RepeatedRows& rows = repeated[static_cast<size_t>(entry)];
  again.push_back({rows.begin, rows.end, times * rows.periods, lane});
  for (int64_t inner = rows.first_inner; inner < rows.end_inner; ++inner) {
    add_rows(repeated, lane, inner, times * rows.periods, again);
  }
}

void add_on_all_lanes(const Journal& journal, int32_t rank, int64_t entry,
                      std::vector<RowsAgain>& again) {
  for (int32_t lane = 0; lane < journal.lanes(rank); ++lane) {
    const std::span<const RepeatedRows> on_lane = journal.repeated_on(rank, lane);
    if (entry < std::ssize(on_lane)) {
      add_rows(on_lane, lane, entry, 1, again);
    }
  }
}

}  // namespace

// Together, what is left out at one place leads back to where it began. Where steps end in it, as
// much of a step as was done before is done behind it, so that the step has what was simulated.
std::vector<RowsAgain> left_out_within(const Journal& journal, int32_t rank,
                                       const std::vector<StepMark>& steps, const RowRange& rows) {
  std::vector<RowsAgain> again;
  if (journal.repeated.empty()) {
    return again;
  }
  const std::vector<RepeatedRows>& repeated = journal.repeated[static_cast<size_t>(rank)];
  const std::vector<int64_t> steps_in = times_repeated(repeated, [&](const RepeatedRows& each) {
    return std::ranges::count_if(steps, [&](const StepMark& step) {
      return each.begin < step.rows.end && step.rows.end <= each.end;
    });
  });
  const auto row_of = [&](int64_t entry) { return repeated[static_cast<size_t>(entry)].row; };
  for (int64_t entry = 0, end = 0; entry < std::ssize(repeated); entry = end) {
    int64_t steps_ended = 0;
    for (end = entry; end < std::ssize(repeated) && row_of(end) == row_of(entry); ++end) {
      steps_ended += steps_in[static_cast<size_t>(end)];
    }
    const bool is_within = rows.begin <= row_of(entry) && row_of(entry) < rows.end;
    for (int64_t each = entry; is_within && steps_ended == 0 && each < end; ++each) {
      add_on_all_lanes(journal, rank, each, again);
    }
  }
  return again;
}

std::vector<RowsAgain> all_left_out_within(const Journal& journal, int32_t rank,
                                           const RowRange& rows) {
  std::vector<RowsAgain> again;
  if (journal.repeated.empty()) {
    return again;
  }
  const std::vector<RepeatedRows>& repeated = journal.repeated[static_cast<size_t>(rank)];
  for (int64_t entry = 0; entry < std::ssize(repeated); ++entry) {
    const RepeatedRows& each = repeated[static_cast<size_t>(entry)];
    if (rows.begin <= each.row && each.row < rows.end) {
      add_on_all_lanes(journal, rank, entry, again);
    }
  }
  return again;
}

}  // namespace lockstep::cli
