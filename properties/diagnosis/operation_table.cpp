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
  for (int32_t rank = 0; rank < journal.ranks(); ++rank) {
    if (which == TabledOperations::parts && journal.own_rank(rank) != rank) {
      continue;  // what it exchanges with its neighbours, the ranks that ran for them did as well
    }
    std::map<std::pair<int32_t, uint64_t>, int64_t> positions;
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

void OperationTable::add_lane(int32_t rank, int32_t lane,
                              std::map<std::pair<int32_t, uint64_t>, int64_t>& positions) {
  const LaneJournal& rows = journal_->lane(rank, lane);
  const std::map<uint32_t, int32_t> sources = chosen_sources(rows);
  LaneIndex index;
  index.first = operations_.size();
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
    const size_t number = operations_.size();
    if (is_collective(row.kind) && communicator) {
      operation.position = positions[{0, operation.communicator}]++;
      if (!has(row)) {
        return;
      }
      auto& calls = calls_[operation.communicator];
      calls.resize(std::max(calls.size(), static_cast<size_t>(operation.position) + 1));
      calls[static_cast<size_t>(operation.position)].push_back(number);
    } else if (is_point_to_point(row.kind)) {
      Channel& channel = channels_[channel_of(operation)];
      auto& messages = row.kind == OpKind::send ? channel.sends : channel.receives;
      operation.position = static_cast<int64_t>(messages.size());
      messages.push_back(number);
    }
    if (which_ == TabledOperations::all && row.sequence >= index.by_sequence.size()) {
      index.by_sequence.resize(row.sequence + 1, none);
    }
    if (which_ == TabledOperations::all) {
      index.by_sequence[row.sequence] = std::min(index.by_sequence[row.sequence], number);
    }
    operations_.push_back(operation);
  });
  lanes_[static_cast<size_t>(rank)].push_back(std::move(index));
}

bool OperationTable::has(const Row& row) const {
  return which_ == TabledOperations::all || is_point_to_point(row.kind) ||
         row.kind == OpKind::all_to_all;
}

ChannelKey OperationTable::channel_of(const Operation& operation) const {
  const bool sends = operation.row.kind == OpKind::send;
  return {operation.communicator, sends ? operation.rank : operation.source,
          sends ? operation.row.peer : operation.rank, operation.row.tag};
}

std::pair<size_t, size_t> OperationTable::of_ticket(int32_t rank, Ticket ticket) const {
  const auto& lanes = lanes_[static_cast<size_t>(rank)];
  if (ticket.lane.value >= lanes.size() ||
      ticket.sequence >= lanes[ticket.lane.value].by_sequence.size()) {
    return {0, 0};
  }
  const size_t first = lanes[ticket.lane.value].by_sequence[ticket.sequence];
  if (first == none) {
    return {0, 0};
  }
  size_t end = first;
  while (end < operations_.size() && operations_[end].rank == rank &&
         operations_[end].ticket() == ticket) {
    ++end;
  }
  return {first, end};
}

size_t OperationTable::first_of(int32_t rank, int32_t lane) const {
  return lanes_[static_cast<size_t>(rank)][static_cast<size_t>(lane)].first;
}

const RankSet& OperationTable::members(uint64_t communicator) const {
  return members_.at(communicator);
}

const std::vector<size_t>& OperationTable::call(uint64_t communicator, int64_t position) const {
  return calls_.at(communicator)[static_cast<size_t>(position)];
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
