#include "properties/diagnosis/last_operation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "properties/diagnosis/calls.hpp"

namespace lockstep {

namespace {

// Rows of a lane with which an operation begins, as a simulation that left steps out has them: so
// many more there were.
int64_t operations_left_out(const Journal& journal, int32_t rank, int32_t lane,
                            const std::vector<int64_t>& rows) {
  const auto before = [&rows](int64_t row) {
    return std::ranges::lower_bound(rows, row) - rows.begin();
  };
  const std::vector<int64_t> times =
      times_repeated(journal.repeated_on(rank, lane),
                     [&](const RepeatedRows& all) { return before(all.end) - before(all.begin); });
  return std::accumulate(times.begin(), times.end(), int64_t{0});
}

}  // namespace

LastOperation last_operation(const Journal& journal, int32_t rank) {
  LastOperation last;
  for (int32_t lane = journal.lanes(rank) - 1; lane >= 0; --lane) {
    uint32_t counted = 0;
    int64_t next = 0;
    std::vector<int64_t> begin_operations;
    journal.lane(rank, lane).for_each([&](const Row& row) {
      const int64_t at = next++;
      if (row.row != RowKind::op) {
        return;
      }
      if (row.sequence != counted) {
        begin_operations.push_back(at);
      }
      counted = row.sequence;
      if (lane == 0) {
        last.name =
            row.kind == OpKind::compute ? name_of(row.kernel) : name_of(called_kind(journal, row));
        last.site = row.site;
      }
    });
    last.count += std::ssize(begin_operations);
    last.count += operations_left_out(journal, rank, lane, begin_operations);
  }
  return last;
}

std::string raised_text(std::string_view message) {
  std::string line;
  for (const char letter : message) {
    switch (letter) {
      case '\n': line += "\\n"; break;
      case '\r': line += "\\r"; break;
      case '\t': line += "\\t"; break;
      default: line += letter;
    }
  }
  return fmt::format("raised '{}'", line);
}

std::string lost_text(const RunResult& run, int32_t rank, int64_t ranks) {
  const LastOperation last = last_operation(*run.journal, rank);
  const char* const was = ranks == 1 ? "was" : "were";
  const char* const its = ranks == 1 ? "its" : "their";
  std::string text = last.count == 0
                         ? fmt::format("{} lost before {} first operation", was, its)
                         : fmt::format("{} lost after {} operation {}{}{}", was, its, last.count,
                                       last.name.empty() ? "" : ", ", last.name);
  const auto at = static_cast<size_t>(rank);
  const bool says_why =
      at < run.ends.size() && run.ends[at].message.find("out of memory") != std::string::npos;
  return says_why ? fmt::format("{} ({})", text, run.ends[at].message) : text;
}

}  // namespace lockstep
