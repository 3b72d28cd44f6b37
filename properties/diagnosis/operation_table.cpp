#include "properties/diagnosis/operation_table.hpp"

#include <algorithm>

namespace lockstep {

namespace {

// The sources that receives from any rank got, by sequence.
std::map<uint32_t, int32_t> chosen_sources(const LaneJournal& lane) {
  std::map<uint32_t, int32_t> sources;
  lane.for_each([&sources](const Row& row) {
    if (row.row == RowKind::choice && row.tag == static_cast<int32_t>(ChoiceKind::any_source)) {
      sources[row.sequence] = row.peer;
    }
  });
  return sources;
}

}  // namespace

OperationTable::OperationTable(const Journal& journal, TabledOperations which)
    : journal_(&journal), which_(which), lanes_(static_cast<size_t>(journal.ranks())) {
  add_members(journal);
  if (which == TabledOperations::undone) {
    add_undone(journal);
    return;
  }
  for (int32_t rank = 0; rank < journal.ranks(); ++rank) {
    if (which == TabledOperations::parts && journal.own_rank(rank) != rank) {
      continue;  // what it exchanges with its neighbours, the ranks that ran for them did as well
    }
    Positions positions;
    for (int32_t lane = 0; lane < journal.lanes(rank); ++lane) {
      add_lane(rank, lane, positions);
    }
  }
}

void OperationTable::add_members(const Journal& journal) {
  members_[0] = RankSet::all(journal.ranks());
  for (const auto& groups : journal.groups) {
    for (const Membership& group : groups) {
      if (group.communicator != 0 && !members_.contains(group.communicator)) {
        members_[group.communicator] = RankSet(group.members);
      }
    }
  }
}

void OperationTable::add_lane(int32_t rank, int32_t lane, Positions& positions) {
  const LaneJournal& rows = journal_->lane(rank, lane);
  const std::map<uint32_t, int32_t> sources = chosen_sources(rows);
  const size_t first = operations_.size();
  int64_t at = -1;
  rows.for_each([&](const Row& row) {
    ++at;
    if (row.row != RowKind::op || !(has(row) || is_collective(row.kind))) {
      return;
    }
    Operation operation{row, rank, LaneId{static_cast<uint16_t>(lane)}, at, 0, 0, row.peer};
    const auto communicator = communicator_of(*journal_, rank, row.group);
    if (row.kind == OpKind::recv && row.peer == any_rank) {
      const auto chosen = sources.find(row.sequence);
      operation.source = chosen == sources.end() ? any_rank : chosen->second;
    }
    operation.communicator = communicator.value_or(0);
    if (is_collective(row.kind) && communicator) {
      operation.position = positions[operation.communicator]++;
      if (!has(row)) {
        return;
      }
    } else if (is_point_to_point(row.kind)) {
      Channel& channel = channels_[channel_of(operation)];
      auto& messages = row.kind == OpKind::send ? channel.sends : channel.receives;
      operation.position = static_cast<int64_t>(messages.size());
      messages.push_back(operations_.size());
    }
    add(operation);
  });
  lanes_[static_cast<size_t>(rank)].push_back({first, operations_.size()});
}

void OperationTable::add(const Operation& operation) {
  if (is_collective(operation.row.kind) &&
      communicator_of(*journal_, operation.rank, operation.row.group)) {
    auto& calls = calls_[operation.communicator];
    const auto first = first_calls_.find(operation.communicator);
    const auto at =
        static_cast<size_t>(operation.position - (first == first_calls_.end() ? 0 : first->second));
    calls.resize(std::max(calls.size(), at + 1));
    calls[at].push_back(operations_.size());
  }
  operations_.push_back(operation);
}

namespace {

/// An operation of a rank that may be in the tables of several: of those that share its journal.
struct SharedOperation {
  Operation operation;  ///< of the rank that ran
  bool is_call = false;
  bool is_done = false;
};

// Of the rank that ran for others, in the order of its lanes.
std::vector<SharedOperation> operations_of(const Journal& journal, int32_t rank) {
  std::map<GroupId, int64_t> positions;
  std::vector<SharedOperation> operations;
  for (int32_t lane = 0; lane < journal.lanes(rank); ++lane) {
    const LaneJournal& rows = journal.lane(rank, lane);
    int64_t index = -1;
    rows.for_each([&](const Row& row) {
      ++index;
      if (row.row != RowKind::op) {
        return;
      }
      const bool is_call =
          is_collective(row.kind) && communicator_of(journal, rank, row.group).has_value();
      const int64_t position = is_call ? positions[row.group]++ : 0;
      const bool is_done =
          row.kind == OpKind::host || rows.completion(row.sequence).outcome == Outcome::ok;
      if (is_call || !is_done) {
        operations.push_back(
            {{row, rank, LaneId{static_cast<uint16_t>(lane)}, index, 0, position, row.peer},
             is_call,
             is_done});
      }
    });
  }
  return operations;
}

}  // namespace

// A first pass finds from which call on each communicator is needed.
void OperationTable::add_undone(const Journal& journal) {
  std::map<int32_t, std::vector<SharedOperation>> of_journals;
  for (const int32_t own : journal.own_ranks()) {
    of_journals[own] = operations_of(journal, own);
  }
  const auto communicator_at = [&](int32_t rank, const SharedOperation& shared) {
    return communicator_of(journal, rank, shared.operation.row.group).value_or(0);
  };
  for (int32_t rank = 0; rank < journal.ranks(); ++rank) {
    for (const SharedOperation& shared : of_journals.at(journal.own_rank(rank))) {
      if (shared.is_call && !shared.is_done) {
        const auto [first, is_new] =
            first_calls_.try_emplace(communicator_at(rank, shared), shared.operation.position);
        first->second = std::min(first->second, shared.operation.position);
      }
    }
  }
  for (int32_t rank = 0; rank < journal.ranks(); ++rank) {
    std::vector<LaneRange>& lanes = lanes_[static_cast<size_t>(rank)];
    for (int32_t lane = 0; lane < journal.lanes(rank); ++lane) {
      lanes.push_back({operations_.size(), operations_.size()});
      for (const SharedOperation& shared : of_journals.at(journal.own_rank(rank))) {
        if (shared.operation.lane.value != lane) {
          continue;
        }
        Operation operation = shared.operation;
        operation.rank = rank;
        operation.communicator = communicator_at(rank, shared);
        const auto first = first_calls_.find(operation.communicator);
        if (!shared.is_done ||
            (first != first_calls_.end() && operation.position >= first->second)) {
          add(operation);
        }
      }
      lanes.back().end = operations_.size();
    }
  }
}

bool OperationTable::has(const Row& row) const {
  return which_ != TabledOperations::parts || is_point_to_point(row.kind) ||
         row.kind == OpKind::all_to_all;
}

ChannelKey OperationTable::channel_of(const Operation& operation) const {
  const bool sends = operation.row.kind == OpKind::send;
  return {operation.communicator, sends ? operation.rank : operation.source,
          sends ? operation.row.peer : operation.rank, operation.row.tag};
}

std::pair<size_t, size_t> OperationTable::of_ticket(int32_t rank, Ticket ticket) const {
  const auto& lanes = lanes_[static_cast<size_t>(rank)];
  if (ticket.lane.value >= lanes.size()) {
    return {0, 0};
  }
  const LaneRange& lane = lanes[ticket.lane.value];
  const auto found = std::ranges::equal_range(
      operations_.begin() + static_cast<int64_t>(lane.first),
      operations_.begin() + static_cast<int64_t>(lane.end), ticket.sequence, {},
      [](const Operation& operation) { return operation.row.sequence; });
  const auto first = static_cast<size_t>(found.begin() - operations_.begin());
  return found.empty() ? std::pair<size_t, size_t>() : std::pair(first, first + found.size());
}

bool OperationTable::has_completed(int32_t rank, Ticket ticket) const {
  return which_ == TabledOperations::undone && ticket.lane.value < journal_->lanes(rank) &&
         journal_->lane(rank, ticket.lane.value).completion(ticket.sequence).outcome == Outcome::ok;
}

size_t OperationTable::first_of(int32_t rank, int32_t lane) const {
  return lanes_[static_cast<size_t>(rank)][static_cast<size_t>(lane)].first;
}

const RankSet& OperationTable::members(uint64_t communicator) const {
  return members_.at(communicator);
}

const std::vector<size_t>& OperationTable::call(uint64_t communicator, int64_t position) const {
  const auto first = first_calls_.find(communicator);
  return calls_.at(communicator)[static_cast<size_t>(
      position - (first == first_calls_.end() ? 0 : first->second))];
}

size_t OperationTable::partner(size_t number) const {
  const Operation& operation = operations_[number];
  const auto channel = channels_.find(channel_of(operation));
  if (channel == channels_.end()) {
    return none;
  }
  const auto& others =
      operation.row.kind == OpKind::send ? channel->second.receives : channel->second.sends;
  const auto position = static_cast<size_t>(operation.position);
  return position < others.size() ? others[position] : none;
}

}  // namespace lockstep
