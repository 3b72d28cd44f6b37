#include "properties/invariants/no_deadlock.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "properties/diagnosis/call_numbers.hpp"
#include "properties/diagnosis/last_operation.hpp"
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

// Everything that the findings of one hung (or replayed) run are made from.
class Teller {
 public:
  Teller(const RunResult& run, const OperationTable& table, const WaitGraph& graph)
      : run_(run), table_(table), graph_(graph) {}

  Finding circle(const WaitKnot& knot, const std::string& code, Level level) const {
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
  Finding missing(const RankSet& ranks, const std::vector<uint32_t>& waiters,
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

  std::vector<size_t> communications(const std::vector<uint32_t>& nodes) const {
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

 private:
  void fill(Finding& finding, const std::vector<size_t>& operations) const {
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
  std::string chain(const std::vector<uint32_t>& cycle) const {
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
      text += fmt::format("{}rank {} waits in {} of group {} for {}", text.empty() ? "" : "; ",
                          node.rank, text_of(table_, table_[node.operation]),
                          group_label(table_, table_[node.operation]),
                          other.rank == node.rank ? "its own earlier operation"
                                                  : fmt::format("rank {}", other.rank));
      ++steps;
    }
    return text;
  }

  const RunResult& run_;
  const OperationTable& table_;
  const WaitGraph& graph_;
};

std::string code_of_circle(const OperationTable& table, const std::vector<size_t>& operations,
                           const RunProgress* buffered) {
  std::set<uint64_t> groups;
  bool messages = false;
  bool collectives = false;
  bool would_end = buffered != nullptr;
  for (const size_t number : operations) {
    messages = messages || is_point_to_point(table[number].row.kind);
    collectives = collectives || is_collective(table[number].row.kind);
    groups.insert(table[number].communicator);
    would_end = would_end && buffered->done[number] != 0;
  }
  if (messages && would_end) {
    return "LS108";
  }
  if (messages && !collectives) {
    return "LS107";
  }
  return groups.size() > 1 ? "LS106" : "LS103";
}

std::string reason_of_end(const RunResult& run, int32_t rank, const Operation* waiter) {
  switch (end_of_rank(run, rank)) {
    case RankEnd::Kind::raised: return raised_text(run.ends[static_cast<size_t>(rank)].message);
    case RankEnd::Kind::lost: return lost_text(run, rank);
    default: break;
  }
  if (waiter == nullptr) {
    return "ended without giving it";
  }
  switch (waiter->row.kind) {
    case OpKind::recv: return "never sends";
    case OpKind::send: return "never receives";
    default: return "ended without calling it";
  }
}

// The nodes that wait directly for a node, through the call that they are part of.
std::vector<uint32_t> direct_waiters(const WaitGraph& graph, uint32_t wanted) {
  std::vector<uint32_t> waiters;
  for (uint32_t index = 0; index < graph.nodes().size(); ++index) {
    const WaitNode& node = graph.nodes()[index];
    if (std::find(node.waits_for.begin(), node.waits_for.end(), wanted) == node.waits_for.end()) {
      continue;
    }
    if (node.kind == WaitNode::Kind::call) {
      const std::vector<uint32_t> parts = direct_waiters(graph, index);
      waiters.insert(waiters.end(), parts.begin(), parts.end());
    } else {
      waiters.push_back(index);
    }
  }
  return waiters;
}

// The operations that belong to one call or message.
std::vector<size_t> parts_of(const OperationTable& table, size_t number) {
  const Operation& operation = table[number];
  if (is_collective(operation.row.kind)) {
    const auto& call = table.call(operation.communicator, operation.position);
    return {call.begin(), call.end()};
  }
  const size_t partner =
      is_point_to_point(operation.row.kind) ? table.partner(number) : OperationTable::none;
  return partner == OperationTable::none ? std::vector<size_t>() : std::vector<size_t>{partner};
}

// All that was needed has come, and still it does not end: a part of it was lost on the way.
Finding lost_message(const RunResult& run, const OperationTable& table, const RunProgress& progress,
                     const Teller& teller, const WaitGraph& graph, uint32_t index) {
  const WaitNode& node = graph.nodes()[index];
  const Operation& operation = table[node.operation];
  RankSet without;
  RankSet lost;
  for (const size_t part : parts_of(table, node.operation)) {
    const int32_t rank = table[part].rank;
    if (progress.done[part] != 0) {
      without.add(rank);
    } else if (end_of_rank(run, rank) == RankEnd::Kind::lost) {
      lost.add(rank);
    }
  }
  std::vector<uint32_t> waiters = {index};
  if (node.kind == WaitNode::Kind::call) {
    waiters = direct_waiters(graph, index);
  }
  if (!lost.empty()) {
    // A process that is killed in the middle of an exchange leaves it so.
    Finding finding = teller.missing(lost, waiters, lost_text(run, lost.first()));
    finding.fix = {"fix what ended the rank; make sure that an error on one rank stops all ranks"};
    return finding;
  }
  if (without.empty()) {
    Finding finding = teller.missing(RankSet{operation.rank}, waiters,
                                     "has called it like all others, but it does not complete");
    finding.fix = {"check the arguments: sizes and splits must agree on all ranks"};
    if (run.times_measured) {
      finding.fix.insert(finding.fix.begin(),
                         "check the connection of the ranks (a link that went down, a firewall);");
    }
    return finding;
  }
  Finding finding = teller.missing(without, waiters, "went on: its message was lost");
  finding.fix = {"the network or the process lost a message; no change of the program fixes it"};
  return finding;
}

bool sends_messages(const Journal& journal) {
  bool found = false;
  for (const int32_t rank : journal.own_ranks()) {
    for (int32_t lane = 0; lane < journal.lanes(rank) && !found; ++lane) {
      journal.lane(rank, lane).for_each([&](const Row& row) {
        found = found || (row.row == RowKind::op && is_point_to_point(row.kind));
      });
    }
  }
  return found;
}

}  // namespace

std::vector<Finding> no_deadlock(const RunResult& run) {
  if (!run.hung || run.journal == nullptr) {
    return {};
  }
  const OperationTable table(*run.journal);
  const RunProgress progress = progress_of(run, table);
  const WaitGraph graph(table, progress);
  const Teller teller(run, table, graph);
  std::vector<Finding> findings;
  std::optional<RunProgress> buffered;
  std::map<std::vector<uint32_t>, RankSet> ended;  ///< by who waits for them
  std::vector<uint32_t> stalled;                   ///< kernels that nothing is known to hold up
  for (const WaitKnot& knot : graph.knots()) {
    const uint32_t first = knot.nodes.front();
    const WaitNode& node = graph.nodes()[first];
    if (knot.nodes.size() > 1) {
      const std::vector<size_t> operations = teller.communications(knot.cycle);
      if (table.has_messages() && !buffered) {
        buffered = replay(table, Sends::buffered);
      }
      findings.push_back(teller.circle(
          knot, code_of_circle(table, operations, buffered ? &*buffered : nullptr), Level::error));
    } else if (node.kind == WaitNode::Kind::lane) {
      ended[direct_waiters(graph, first)].add(node.rank);
    } else if (is_communication(table[node.operation].row.kind)) {
      findings.push_back(lost_message(run, table, progress, teller, graph, first));
    } else {
      stalled.push_back(first);
    }
  }
  for (const auto& [waiters, ranks] : ended) {
    const WaitNode* waiter = waiters.empty() ? nullptr : &graph.nodes()[waiters.front()];
    const Operation* operation = waiter == nullptr || waiter->operation == OperationTable::none
                                     ? nullptr
                                     : &table[waiter->operation];
    findings.push_back(
        teller.missing(ranks, waiters, reason_of_end(run, ranks.first(), operation)));
    if (end_of_rank(run, ranks.first()) == RankEnd::Kind::lost) {
      findings.back().sites.push_back({last_operation(*run.journal, ranks.first()).site,
                                       SiteRole::exception,
                                       fmt::format("the last operation of {}", ranks.phrase())});
    }
  }
  // A kernel waits for others: for whom, a journal without lists does not know.
  if (findings.empty()) {
    for (const uint32_t node : stalled) {
      findings.push_back(lost_message(run, table, progress, teller, graph, node));
    }
  }
  sort_findings(findings);
  return findings;
}

std::vector<Finding> no_buffering_hazard(const RunResult& run) {
  // Most trainings send no messages: a table of all operations would be built for nothing.
  if (run.hung || run.sends_waited || run.journal == nullptr || !sends_messages(*run.journal)) {
    return {};
  }
  const OperationTable table(*run.journal);
  const RunProgress progress = replay(table, Sends::rendezvous);
  if (progress.all_done()) {
    return {};
  }
  // A run that does not end with buffering either was recorded incompletely: no judgement.
  const RunProgress buffered = replay(table, Sends::buffered);
  if (!buffered.all_done()) {
    return {};
  }
  const WaitGraph graph(table, progress);
  const Teller teller(run, table, graph);
  std::vector<Finding> findings;
  for (const WaitKnot& knot : graph.knots()) {
    if (knot.nodes.size() > 1) {
      findings.push_back(teller.circle(knot, "LS108", Level::warning));
    }
  }
  sort_findings(findings);
  return findings;
}

}  // namespace lockstep
