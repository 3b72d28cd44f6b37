#include "properties/invariants/wait_findings.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "properties/diagnosis/call_numbers.hpp"
#include "properties/diagnosis/message_tags.hpp"
#include "properties/diagnosis/remedy.hpp"
#include "properties/invariants/matched_collectives.hpp"

namespace lockstep {

namespace {

std::string group_label(const OperationTable& table, const Operation& operation) {
  return operation.communicator == 0 ? "world" : table.members(operation.communicator).phrase();
}

std::string name_of_call(const OperationTable& table, const Operation& operation) {
  return std::string(name_of(called_kind(table.journal(), operation.row)));
}

// 0: it is no collective.
int64_t number_of_call(const OperationTable& table, const Operation& operation) {
  const auto number = [&] {
    return CallNumbers(table.journal(), operation.rank, operation.communicator)
        .of(operation.position);
  };
  return is_collective(operation.row.kind) ? number() : 0;
}

std::string text_of(const OperationTable& table, const Operation& operation) {
  const Row& row = operation.row;
  std::string text = name_of_call(table, operation);
  if (is_point_to_point(row.kind)) {
    const bool sends = row.kind == OpKind::send;
    const int32_t peer = sends ? row.peer : operation.source;
    text += peer == any_rank ? std::string(" from any rank")
                             : fmt::format(" {} rank {}", sends ? "to" : "from", peer);
    text += row.tag == 0 ? std::string() : fmt::format(" with tag {}", row.tag);
  }
  return text;
}

}  // namespace

Finding WaitFindings::circle(const WaitKnot& knot, const std::string& code, Level level) const {
  const std::vector<size_t> operations = communications(knot.cycle);
  RankSet ranks;
  std::set<std::string> kinds;
  std::set<uint64_t> groups;
  for (const size_t number : operations) {
    ranks.add(table_[number].rank);
    kinds.insert(name_of_call(table_, table_[number]));
    groups.insert(table_[number].communicator);
  }
  std::string calls;
  for (const std::string& kind : kinds) {
    calls += (calls.empty() ? "" : " and ") + kind;
  }
  const std::string where = groups.size() > 1 ? fmt::format(" of {} groups", groups.size()) : "";
  Finding finding = lockstep::finding_of(
      code, level,
      level == Level::warning
          ? fmt::format("{} {} before it is received: this completes only if sends are buffered",
                        ranks.phrase(), verb(ranks, "send"))
          : fmt::format("{} wait for each other in {}{}", ranks.phrase(), calls, where));
  fill(finding, operations);
  finding.ranks = ranks;
  finding.why.text = chain(knot.cycle);
  finding.fix = remedy_for(code);
  if (const std::string tags = tags_apart(table_, operations);
      !tags.empty() && level == Level::error) {
    finding.why.text += "; " + tags + ", so these two do not meet";
    finding.fix.insert(finding.fix.begin(),
                       "if both are the same message, give them the same tag; otherwise");
  }
  return finding;
}

// Something that these nodes wait for never comes.
Finding WaitFindings::missing(const RankSet& ranks, const std::vector<uint32_t>& waiters,
                              const std::string& reason) const {
  std::vector<size_t> operations;
  RankSet waiting;
  for (const uint32_t waiter : waiters) {
    const WaitNode& node = graph_.nodes()[waiter];
    waiting.add(node.rank);
    if (node.operation != OperationTable::none) {
      operations.push_back(node.operation);
    }
  }
  const std::string what =
      operations.empty() ? "for a signal" : "in " + text_of(table_, table_[operations.front()]);
  Finding finding =
      lockstep::finding_of("LS101", Level::error,
                           fmt::format("{} {} forever {}: {} {}", waiting.phrase(),
                                       verb(waiting, "wait"), what, ranks.phrase(), reason));
  fill(finding, operations);
  finding.ranks = ranks;
  finding.fix = remedy_for(
      "LS101",
      {operations.empty() ? "" : name_of_call(table_, table_[operations.front()]), "", false});
  return finding;
}

std::vector<size_t> WaitFindings::communications(const std::vector<uint32_t>& nodes) const {
  std::vector<size_t> operations;
  for (const uint32_t index : nodes) {
    const WaitNode& node = graph_.nodes()[index];
    if (node.kind == WaitNode::Kind::operation &&
        is_communication(table_[node.operation].row.kind)) {
      operations.push_back(node.operation);
    }
  }
  return operations;
}

void WaitFindings::fill(Finding& finding, const std::vector<size_t>& operations) const {
  if (operations.empty()) {
    return;
  }
  std::map<std::pair<SiteId, std::string>, RankAction> did;
  for (const size_t number : operations) {
    const Operation& operation = table_[number];
    RankAction& action = did[{operation.row.site, name_of_call(table_, operation)}];
    action.operation =
        action.ranks.empty() ? text_of(table_, operation) : name_of_call(table_, operation);
    action.ranks.add(operation.rank);
    action.call = number_of_call(table_, operation);
    action.site = operation.row.site;
  }
  for (const auto& [key, action] : did) {
    finding.did.push_back(action);
  }
  std::sort(finding.did.begin(), finding.did.end(),
            [](const auto& a, const auto& b) { return a.ranks < b.ranks; });
  const Operation& first = table_[operations.front()];
  finding.group = group_label(table_, first);
  finding.call = number_of_call(table_, first);
  std::set<SiteId> told;
  for (const size_t number : operations) {
    const Operation& operation = table_[number];
    if (told.size() < 4 && told.insert(operation.row.site).second) {
      finding.sites.push_back({operation.row.site,
                               told.size() == 1 ? SiteRole::subject : SiteRole::other,
                               fmt::format("{} of group {}, rank {}", text_of(table_, operation),
                                           group_label(table_, operation), operation.rank)});
    }
  }
  const Completion completion =
      run_.journal->lane(first.rank, first.lane.value).completion(first.row.sequence);
  finding.when = completion.issue > Time() && !run_.times_measured
                     ? fmt::format("at {}", time_text(completion.issue.count()))
                     : std::string();
}

// "rank 0 waits in send for rank 1; rank 1 waits in send for rank 0".
std::string WaitFindings::chain(const std::vector<uint32_t>& cycle) const {
  constexpr size_t steps_max = 8;
  std::string text;
  size_t steps = 0;
  for (size_t i = 0; i < cycle.size() && steps < steps_max; ++i) {
    const WaitNode& node = graph_.nodes()[cycle[i]];
    if (node.kind != WaitNode::Kind::operation ||
        !is_communication(table_[node.operation].row.kind)) {
      continue;
    }
    size_t next = i;
    do {
      next = (next + 1) % cycle.size();
    } while (next != i && graph_.nodes()[cycle[next]].kind == WaitNode::Kind::call);
    const WaitNode& other = graph_.nodes()[cycle[next]];
    text += fmt::format(
        "{}rank {} waits in {} of group {} for {}", text.empty() ? "" : "; ", node.rank,
        text_of(table_, table_[node.operation]), group_label(table_, table_[node.operation]),
        other.rank == node.rank ? "its own earlier operation" : fmt::format("rank {}", other.rank));
    ++steps;
  }
  return text;
}

}  // namespace lockstep
