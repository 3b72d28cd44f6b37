#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "model/program/run.hpp"
#include "properties/finding.hpp"

namespace lockstep::test {

/// The lists of one operation of a hand-made journal.
struct Lists {
  std::vector<Ticket> after{};
  std::vector<Slice> reads{};
  std::vector<Slice> writes{};
  std::vector<int64_t> splits{};
};

/// Makes the journal of a run by hand, rank by rank.
class JournalBuilder {
 public:
  explicit JournalBuilder(int32_t ranks) {
    JournalOptions options;
    options.lists = true;
    run_.journal = std::make_unique<Journal>(ranks, options);
    run_.ends.resize(static_cast<size_t>(ranks));
    sequences_.resize(static_cast<size_t>(ranks));
  }

  SiteId site(const std::string& name, int line, SiteId guard = {}, std::string condition = {}) {
    Site site;
    site.description = name;
    site.file = "case.yaml";
    site.line = line;
    site.column = 1;
    site.guard = guard;
    site.condition = std::move(condition);
    return run_.journal->sites.add(site);
  }
  SiteId library(const std::string& name) {
    Site site;
    site.description = name;
    return run_.journal->sites.add(site);
  }

  /// Appends an operation; `outcome` pending = it never completes.
  Ticket op(int32_t rank, Op op, const Lists& lists = {}, Outcome outcome = Outcome::ok,
            LaneId lane = {}) {
    return grouped(rank, {op}, {lists}, outcome, lane);
  }
  Ticket grouped(int32_t rank, const std::vector<Op>& ops, const std::vector<Lists>& lists,
                 Outcome outcome = Outcome::ok, LaneId lane = {}) {
    const Ticket ticket = next(rank, lane);
    LaneJournal& rows = run_.journal->lane(rank, lane);
    for (size_t i = 0; i < ops.size(); ++i) {
      Row row = row_of(ops[i], ticket);
      row.lists =
          rows.append_lists({lists[i].after, lists[i].reads, lists[i].writes, lists[i].splits, {}});
      run_.journal->append(rank, lane, row);
    }
    Completion completion;
    completion.issue = Time(1000) * ++clock_;
    completion.outcome = outcome;
    rows.complete(ticket.sequence, completion);
    return ticket;
  }

  Ticket call(int32_t rank, OpKind kind, SiteId site, int64_t elements = 1,
              Outcome outcome = Outcome::ok, GroupId group = world_group) {
    return op(rank, collective(kind, site, elements, group), {}, outcome);
  }
  static Op collective(OpKind kind, SiteId site, int64_t elements = 1,
                       GroupId group = world_group) {
    Op op;
    op.kind = kind;
    op.dtype = DType::fp32;
    op.site = site;
    op.group = group;
    op.stream = communication_stream;
    const bool has_data = kind != OpKind::barrier && kind != OpKind::new_group;
    op.bytes = Bytes(has_data ? 4 * elements : 0);
    return op;
  }
  static Op transfer(OpKind kind, int32_t peer, SiteId site, int64_t elements = 1) {
    Op op = collective(kind, site, elements);
    op.peer = peer;
    return op;
  }

  void settle(int32_t rank, Ticket ticket, LaneId lane = {}, bool any = false) {
    Row row;
    row.row = RowKind::settle;
    row.sequence = ticket.sequence;
    row.peer = ticket.lane.value;
    row.tag = any ? 1 : 0;
    run_.journal->append(rank, lane, row);
  }
  void choice(int32_t rank, SiteId site, ChoiceKind kind, uint32_t value) {
    Row row;
    row.row = RowKind::choice;
    row.tag = static_cast<int32_t>(kind);
    row.site = site;
    row.peer = static_cast<int32_t>(value);
    row.bytes = 2;
    run_.journal->append(rank, {}, row);
  }
  void row(int32_t rank, const Row& row, LaneId lane = {}) {
    run_.journal->append(rank, lane, row);
  }
  Ticket promise(int32_t rank, LaneId lane = {}) {
    const Ticket ticket = next(rank, lane);
    Row row;
    row.row = RowKind::promise;
    row.sequence = ticket.sequence;
    run_.journal->append(rank, lane, row);
    return ticket;
  }
  void fulfil(int32_t rank, Ticket ticket, LaneId lane = {}) {
    Row row;
    row.row = RowKind::fulfil;
    row.sequence = ticket.sequence;
    row.peer = ticket.lane.value;
    run_.journal->append(rank, lane, row);
  }

  /// The rank waits forever for these.
  void stuck(int32_t rank, std::vector<Ticket> tickets, LaneId lane = {}) {
    run_.hung = true;
    if (lane == LaneId{}) {
      end(rank, RankEnd::Kind::stuck);
    }
    run_.waiting.push_back({rank, lane, Until::all, std::move(tickets)});
  }
  void end(int32_t rank, RankEnd::Kind kind, SiteId site = {}, std::string message = {}) {
    run_.ends[static_cast<size_t>(rank)] = {kind, site, std::move(message), false};
  }
  /// The next group of each of these ranks, as a world notes it.
  void group(const std::vector<int32_t>& members, int64_t parent_call) {
    const uint64_t key = communicator_key(0, parent_call, members);
    for (const int32_t rank : members) {
      auto& known = run_.journal->groups[static_cast<size_t>(rank)];
      if (known.empty()) {
        known.emplace_back();
      }
      known.push_back({key, members});
    }
  }

  RunResult& run() { return run_; }
  Journal& journal() { return *run_.journal; }

 private:
  Ticket next(int32_t rank, LaneId lane) {
    auto& of_lanes = sequences_[static_cast<size_t>(rank)];
    of_lanes.resize(std::max<size_t>(of_lanes.size(), lane.value + size_t{1}));
    return {++of_lanes[lane.value], lane};
  }

  RunResult run_;
  std::vector<std::vector<uint32_t>> sequences_;
  int64_t clock_ = 0;
};

}  // namespace lockstep::test
