#include "properties/diagnosis/waiting_text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "properties/diagnosis/call_numbers.hpp"
#include "properties/diagnosis/operation_table.hpp"
#include "properties/finding.hpp"
#include "properties/invariants/matched_collectives.hpp"

namespace lockstep {

std::vector<std::string> waiting_text(const RunResult& run, size_t limit) {
  const OperationTable table(*run.journal, TabledOperations::undone);
  std::map<std::tuple<uint64_t, int64_t, std::string>, RankSet> by_call;
  for (const WaitingLane& lane : run.waiting) {
    for (const Ticket ticket : lane.tickets) {
      const auto [first, end] = table.of_ticket(lane.rank, ticket);
      if (first != end && never_completed(*run.journal, lane.rank, ticket)) {
        const Operation& operation = table[first];
        const bool call = is_collective(operation.row.kind);
        const CallNumbers numbers(*run.journal, lane.rank, operation.communicator);
        by_call[{call ? operation.communicator : 0, call ? numbers.of(operation.position) : -1,
                 std::string(name_of(called_kind(*run.journal, operation.row)))}]
            .add(lane.rank);
        break;
      }
    }
  }
  // Communicators have numbers of no order that a reader knows.
  std::vector<std::pair<std::tuple<uint64_t, int64_t, std::string>, RankSet>> in_order(
      by_call.begin(), by_call.end());
  std::ranges::stable_sort(in_order, {}, [](const auto& each) { return each.second.first(); });
  std::vector<std::string> sentences;
  for (const auto& [key, ranks] : in_order) {
    const auto& [communicator, number, name] = key;
    const std::string group = communicator == 0 ? "world" : table.members(communicator).phrase();
    if (sentences.size() < limit) {
      sentences.push_back(
          number < 0 ? fmt::format("{} {} {}", ranks.phrase(), verb(ranks, "wait"),
                                   name == name_of(OpKind::event) ? "for a stream" : "in " + name)
                     : fmt::format("{} {} in {} (call {} of group {})", ranks.phrase(),
                                   verb(ranks, "wait"), name, number, group));
    }
  }
  return sentences;
}

}  // namespace lockstep
