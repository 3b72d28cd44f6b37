#include "model/program/decorators.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "model/core/ensure.hpp"

namespace lockstep {

namespace {
uint64_t key_of(Ticket ticket) { return uint64_t{ticket.lane.value} << 32 | ticket.sequence; }
}  // namespace

// Recording

RecordingPort::RecordingPort(Port& inner, Journal& journal)
    : PortDecorator(inner),
      journal_(journal),
      rank_(static_cast<int32_t>(inner.place().rank.value)),
      lists_(journal.options().lists) {}

void RecordingPort::append(const Row& row) const { journal_.append(rank_, inner_.lane(), row); }

BufferId RecordingPort::allocate(const BufferSpec& spec) {
  const BufferId buffer = inner_.allocate(spec);
  Row row;
  row.row = RowKind::allocate;
  row.dtype = spec.dtype;
  row.tag = static_cast<int32_t>(buffer.value);
  row.peer = static_cast<int32_t>(spec.purpose);
  row.stream = stream(spec.home_queue, spec.device);
  row.bytes = (Bytes(size_of(spec.dtype)) * spec.elements).count();
  append(row);
  return buffer;
}

void RecordingPort::release(BufferId buffer, SiteId site) {
  inner_.release(buffer, site);
  Row row;
  row.row = RowKind::release;
  row.site = site;
  row.tag = static_cast<int32_t>(buffer.value);
  append(row);
}

void RecordingPort::append_read(const Slice& from) const {
  Row row;
  row.row = RowKind::read;
  row.dtype = from.dtype;
  row.tag = static_cast<int32_t>(from.buffer.value);
  row.bytes = from.bytes().count();
  if (lists_) {
    OpLists lists;
    lists.reads = {&from, 1};
    row.lists = journal_.lane(rank_, inner_.lane()).append_lists(lists);
  }
  append(row);
}

Values RecordingPort::read(const Slice& from) {
  append_read(from);
  return inner_.read(from);
}

SharedValues RecordingPort::read_shared(const Slice& from) {
  append_read(from);
  return inner_.read_shared(from);
}

Ticket RecordingPort::submit(std::span<const Op> ops) {
  const Ticket ticket = inner_.submit(ops);
  for (const Op& op : ops) {
    Row row = row_of(op, ticket);
    if (lists_) {
      row.lists = journal_.lane(rank_, ticket.lane).append_lists(op.list());
    }
    journal_.append(rank_, ticket.lane, row);
    if (op.kind == OpKind::recv && op.peer == any_rank) {
      any_source_receives_.emplace(key_of(ticket), op.site);
    }
  }
  return ticket;
}

void RecordingPort::wait_begins(std::span<const Ticket> tickets, Until until) {
  for (const Ticket ticket : tickets) {
    Row row;
    row.row = RowKind::settle;
    row.sequence = ticket.sequence;
    row.peer = ticket.lane.value;
    row.tag = until == Until::any ? 1 : 0;
    append(row);
  }
  inner_.wait_begins(tickets, until);
}

Status RecordingPort::status(Ticket ticket) const {
  const Status status = inner_.status(ticket);
  const auto any_source = any_source_receives_.find(key_of(ticket));
  if (any_source != any_source_receives_.end() && status.outcome == Outcome::ok) {
    Row row;
    row.row = RowKind::choice;
    row.tag = static_cast<int32_t>(ChoiceKind::any_source);
    row.sequence = ticket.sequence;
    row.peer = static_cast<int32_t>(status.source.value);
    row.site = any_source->second;
    append(row);
    any_source_receives_.erase(any_source);
  }
  return status;
}

Ticket RecordingPort::promise() {
  const Ticket ticket = inner_.promise();
  Row row;
  row.row = RowKind::promise;
  row.sequence = ticket.sequence;
  append(row);
  return ticket;
}

void RecordingPort::fulfil(Ticket promise) {
  Row row;
  row.row = RowKind::fulfil;
  row.sequence = promise.sequence;
  row.peer = promise.lane.value;
  append(row);
  inner_.fulfil(promise);
}

uint32_t RecordingPort::choose(SiteId site, ChoiceKind kind, uint32_t alternatives,
                               uint32_t local) {
  const uint32_t chosen = inner_.choose(site, kind, alternatives, local);
  Row row;
  row.row = RowKind::choice;
  row.tag = static_cast<int32_t>(kind);
  row.peer = static_cast<int32_t>(chosen);
  row.bytes = alternatives;
  row.site = site;
  append(row);
  return chosen;
}

// Checking

Fingerprint fingerprint_of(const Op& op) {
  Fingerprint print{op.kind, op.dtype, Reduction::sum, 0, op.bytes.count(), 0};
  if (reduces(op.kind)) {
    print.reduction = op.reduction;
  }
  if (has_root(op.kind)) {
    print.root = op.peer;
  }
  // The parts of an uneven all_to_all and the colours of a split differ between ranks by design.
  if (op.kind == OpKind::reduce_scatter ||
      (op.kind == OpKind::new_group && (op.flags & flag_color) == 0)) {
    uint64_t hash = 14695981039346656037ULL;
    for (const int64_t part : op.list().splits) {
      hash = (hash ^ static_cast<uint64_t>(part)) * 1099511628211ULL;
    }
    print.splits = static_cast<int64_t>(hash);
  }
  return print;
}

std::optional<Mismatch> FingerprintBoard::post(RankId rank, GroupId group, int64_t call,
                                               const Fingerprint& fingerprint) {
  Calls& calls = group == world_group ? world_ : others_[group];
  ensure(call >= calls.first && call <= calls.end, "calls of a group come in order");
  if (call == calls.end) {
    add(calls, {fingerprint, rank, 0});
  }
  Post& first = calls.at(call);
  if (!(first.fingerprint == fingerprint)) [[unlikely]] {
    return Mismatch{group, call, first.rank, rank, first.fingerprint, fingerprint};
  }
  ++first.posted;
  while (calls.first < calls.end && calls.at(calls.first).posted == ranks_) {
    ++calls.first;
  }
  return std::nullopt;
}

void FingerprintBoard::add(Calls& calls, const Post& post) {
  if (calls.end - calls.first == static_cast<int64_t>(calls.ring.size())) {
    Calls larger{calls.first, calls.end, std::vector<Post>(calls.ring.size() * 2)};
    for (int64_t call = calls.first; call < calls.end; ++call) {
      larger.at(call) = calls.at(call);
    }
    calls = std::move(larger);
  }
  calls.at(calls.end++) = post;
}

int64_t FingerprintBoard::open_calls(GroupId group) const {
  const auto found = others_.find(group);
  const Calls* calls = group == world_group ? &world_ : nullptr;
  calls = found == others_.end() ? calls : &found->second;
  return calls == nullptr ? 0 : calls->end - calls->first;
}

Port& CheckingPort::entrance_for(OpKind kind) {
  return is_collective(kind) ? *this : inner_.entrance_for(kind);
}

Ticket CheckingPort::submit(std::span<const Op> ops) {
  for (const Op& op : ops) {
    if (is_collective(op.kind) && op.group == world_group) {
      check(op);
    }
  }
  return inner_.submit(ops);
}

void CheckingPort::check(const Op& op) {
  const auto mismatch = board_.post(rank_, op.group, calls_++, fingerprint_of(op));
  if (mismatch) [[unlikely]] {
    throw ProgramException(
        op.site,
        fmt::format("call {} of group world: rank {} calls {}, rank {} calls {}",
                    mismatch->call + 1, mismatch->first.value, name_of(mismatch->first_call.kind),
                    mismatch->second.value, name_of(mismatch->second_call.kind)));
  }
}

// Replay

ReplayPort::ReplayPort(Port& inner, const Journal& recorded) : PortDecorator(inner) {
  const auto rank = static_cast<int32_t>(inner.place().rank.value);
  for (int32_t lane = 0; lane < recorded.lanes(rank); ++lane) {
    LaneRecord& record = lanes_.emplace_back();
    recorded.lane(rank, lane).for_each([this, &record](const Row& row) {
      if (row.row != RowKind::choice) {
        return;
      }
      if (static_cast<ChoiceKind>(row.tag) == ChoiceKind::any_source) {
        record.sources[row.sequence] = row.peer;
        any_source_ = true;
      } else {
        record.choices.push_back(row);
      }
    });
  }
}

ReplayPort::LaneRecord& ReplayPort::record_of(LaneId lane) {
  if (lane.value >= lanes_.size()) {
    lanes_.resize(lane.value + 1);
  }
  return lanes_[lane.value];
}

// Where sources were chosen, every submission counts: they are found again by sequence.
Port& ReplayPort::entrance_for(OpKind kind) {
  return any_source_ ? *this : inner_.entrance_for(kind);
}

Ticket ReplayPort::submit(std::span<const Op> ops) {
  if (!any_source_) [[likely]] {
    return inner_.submit(ops);
  }
  return submit_named(ops);
}

Ticket ReplayPort::submit_named(std::span<const Op> ops) {
  Op named;
  if (ops.size() == 1 && ops.front().kind == OpKind::recv && ops.front().peer == any_rank) {
    const LaneRecord& record = record_of(inner_.lane());
    const auto source = record.sources.find(record.last_sequence + 1);
    if (source != record.sources.end()) {
      named = ops.front();
      named.peer = source->second;
      ops = {&named, 1};
    }
  }
  const Ticket ticket = inner_.submit(ops);
  LaneRecord& record = record_of(ticket.lane);
  record.last_sequence = ticket.sequence;
  if (ops.data() == &named) {
    record.named[ticket.sequence] = {Outcome::ok, RankId{static_cast<uint32_t>(named.peer)},
                                     named.bytes};
  }
  return ticket;
}

Ticket ReplayPort::promise() {
  const Ticket ticket = inner_.promise();
  record_of(ticket.lane).last_sequence = ticket.sequence;
  return ticket;
}

Status ReplayPort::status(Ticket ticket) const {
  const Status status = inner_.status(ticket);
  if (!any_source_ || status.outcome != Outcome::ok || ticket.lane.value >= lanes_.size()) {
    return status;
  }
  const auto& named = lanes_[ticket.lane.value].named;
  const auto found = named.find(ticket.sequence);
  return found != named.end() ? found->second : status;
}

uint32_t ReplayPort::choose(SiteId site, ChoiceKind kind, uint32_t alternatives, uint32_t local) {
  LaneRecord& record = record_of(inner_.lane());
  if (record.next_choice < record.choices.size()) {
    const Row& row = record.choices[record.next_choice++];
    if (row.site == site && row.tag == static_cast<int32_t>(kind) &&
        row.bytes == static_cast<int64_t>(alternatives)) {
      return static_cast<uint32_t>(row.peer);
    }
  }
  return inner_.choose(site, kind, alternatives, local);
}

}  // namespace lockstep
