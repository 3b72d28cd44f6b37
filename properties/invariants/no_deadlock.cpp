#include "properties/invariants/no_deadlock.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "properties/diagnosis/last_operation.hpp"
#include "properties/invariants/matched_collectives.hpp"
#include "properties/invariants/wait_findings.hpp"

namespace lockstep {

namespace {

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

std::string reason_of_end(const RunResult& run, const RankSet& ranks, const Operation* waiter) {
  const int32_t rank = ranks.first();
  switch (end_of_rank(run, rank)) {
    case RankEnd::Kind::raised: return raised_text(run.ends[static_cast<size_t>(rank)].message);
    case RankEnd::Kind::lost: return lost_text(run, rank, ranks.size());
    default: break;
  }
  if (waiter == nullptr) {
    return "does not give it";
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
                     const WaitFindings& wait_findings, const WaitGraph& graph, uint32_t index) {
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
    Finding finding =
        wait_findings.missing(lost, waiters, lost_text(run, lost.first(), lost.size()));
    finding.fix = {"fix what ended the rank; make sure that an error on one rank stops all ranks"};
    return finding;
  }
  if (without.empty()) {
    Finding finding =
        wait_findings.missing(RankSet{operation.rank}, waiters,
                              is_point_to_point(operation.row.kind)
                                  ? "has called it, but it does not complete"
                                  : "has called it like all others, but it does not complete");
    finding.fix = {"check the arguments: sizes and splits must agree on all ranks"};
    if (run.times_measured) {
      finding.fix.insert(finding.fix.begin(),
                         "check the connection of the ranks (a link that went down, a firewall);");
    }
    return finding;
  }
  Finding finding = wait_findings.missing(without, waiters, "went on: its message was lost");
  finding.fix = {"the network or the process lost a message; no change of the program fixes it"};
  return finding;
}

// A lane that has ended, or goes on without what these wait for.
Finding missing_lane(const RunResult& run, const OperationTable& table,
                     const WaitFindings& wait_findings, const WaitGraph& graph,
                     const std::vector<uint32_t>& waiters, const RankSet& ranks) {
  const size_t waiting =
      waiters.empty() ? OperationTable::none : graph.nodes()[waiters.front()].operation;
  const Operation* operation = waiting == OperationTable::none ? nullptr : &table[waiting];
  Finding finding = wait_findings.missing(ranks, waiters, reason_of_end(run, ranks, operation));
  if (end_of_rank(run, ranks.first()) == RankEnd::Kind::lost) {
    finding.sites.push_back({last_operation(*run.journal, ranks.first()).site, SiteRole::exception,
                             fmt::format("the last operation of {}", ranks.phrase())});
  }
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
  const OperationTable table(*run.journal, sends_messages(*run.journal) ? TabledOperations::all
                                                                        : TabledOperations::undone);
  const RunProgress progress = progress_of(run, table);
  const WaitGraph graph(table, progress);
  const WaitFindings wait_findings(run, table, graph);
  std::vector<Finding> findings;
  std::optional<RunProgress> buffered;
  std::map<std::vector<uint32_t>, RankSet> ended;     ///< by who waits for them
  std::map<std::vector<uint32_t>, RankSet> going_on;  ///< threads: these follow from the others
  std::vector<uint32_t> stalled;                      ///< kernels that nothing is known to hold up
  for (const WaitKnot& knot : graph.knots()) {
    const uint32_t first = knot.nodes.front();
    const WaitNode& node = graph.nodes()[first];
    if (knot.nodes.size() > 1) {
      const std::vector<size_t> operations = wait_findings.communications(knot.cycle);
      if (table.has_messages() && !buffered) {
        buffered = replay(table, Sends::buffered);
      }
      findings.push_back(wait_findings.circle(
          knot, code_of_circle(table, operations, buffered ? &*buffered : nullptr), Level::error));
    } else if (node.kind == WaitNode::Kind::lane) {
      (node.ended ? ended : going_on)[direct_waiters(graph, first)].add(node.rank);
    } else if (is_communication(table[node.operation].row.kind)) {
      findings.push_back(lost_message(run, table, progress, wait_findings, graph, first));
    } else {
      stalled.push_back(first);
    }
  }
  for (const auto& [waiters, ranks] : ended.empty() && findings.empty() ? going_on : ended) {
    findings.push_back(missing_lane(run, table, wait_findings, graph, waiters, ranks));
  }
  // A kernel waits for others: for whom, a journal without lists does not know.
  if (findings.empty()) {
    for (const uint32_t node : stalled) {
      findings.push_back(lost_message(run, table, progress, wait_findings, graph, node));
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
  const WaitFindings wait_findings(run, table, graph);
  std::vector<Finding> findings;
  for (const WaitKnot& knot : graph.knots()) {
    if (knot.nodes.size() > 1) {
      findings.push_back(wait_findings.circle(knot, "LS108", Level::warning));
    }
  }
  sort_findings(findings);
  return findings;
}

}  // namespace lockstep
