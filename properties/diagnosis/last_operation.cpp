#include "properties/diagnosis/last_operation.hpp"

#include <fmt/format.h>

#include "properties/diagnosis/calls.hpp"

namespace lockstep {

LastOperation last_operation(const Journal& journal, int32_t rank) {
  LastOperation last;
  for (int32_t lane = journal.lanes(rank) - 1; lane >= 0; --lane) {
    uint32_t counted = 0;
    journal.lane(rank, lane).for_each([&](const Row& row) {
      if (row.row != RowKind::op) {
        return;
      }
      last.count += row.sequence != counted ? 1 : 0;
      counted = row.sequence;
      if (lane == 0) {
        last.name =
            row.kind == OpKind::compute ? name_of(row.kernel) : name_of(called_kind(journal, row));
        last.site = row.site;
      }
    });
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

std::string lost_text(const RunResult& run, int32_t rank) {
  const LastOperation last = last_operation(*run.journal, rank);
  std::string text = last.count == 0
                         ? "was lost before its first operation"
                         : fmt::format("was lost after its operation {}{}{}", last.count,
                                       last.name.empty() ? "" : ", ", last.name);
  const auto at = static_cast<size_t>(rank);
  const bool says_why =
      at < run.ends.size() && run.ends[at].message.find("out of memory") != std::string::npos;
  return says_why ? fmt::format("{} ({})", text, run.ends[at].message) : text;
}

}  // namespace lockstep
