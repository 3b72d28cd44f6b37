#include "model/program/rank.hpp"

#include <fmt/core.h>

namespace lockstep {

namespace {

Status check(Port& port, Ticket ticket) {
  const Status status = port.status(ticket);
  if (status.outcome != Outcome::ok) [[unlikely]] {
    throw RankFailure(ticket, status.outcome,
                      fmt::format("rank {}: operation {} of lane {} {}", port.place().rank.value,
                                  ticket.sequence, ticket.lane.value, name_of(status.outcome)));
  }
  return status;
}

Op communication(OpKind kind, GroupId group, const Slice& payload) {
  Op op;
  op.kind = kind;
  op.dtype = payload.dtype;
  op.group = group;
  op.bytes = payload.bytes();
  return op;
}

Op rooted(OpKind kind, GroupId group, const Slice& payload, int32_t root) {
  Op op = communication(kind, group, payload);
  op.peer = root;
  return op;
}

Op point_to_point(OpKind kind, GroupId group, const Slice& data, int32_t peer, int32_t tag) {
  Op op = rooted(kind, group, data, peer);
  op.tag = tag;
  return op;
}

}  // namespace

std::string_view name_of(ChoiceKind kind) {
  switch (kind) {
    case ChoiceKind::any_source: return "any_source";
    case ChoiceKind::settle_any: return "settle_any";
    case ChoiceKind::branch: return "branch";
    case ChoiceKind::repeat: return "repeat";
    case ChoiceKind::unknown: return "unknown";
    case ChoiceKind::statement: return "statement";
    case ChoiceKind::step: return "step";
    case ChoiceKind::ready_set: return "ready_set";
  }
  return "?";
}

// The first wait may be for room in the launch queue, with others that wait for the same.
Program Rank::catch_up() {
  co_await CatchUp(*port_);
  co_await CatchUp(*port_);
}

Rank::Rank(Port& port) : port_(&port) {
  for (size_t kind = 0; kind < entrances_.size(); ++kind) {
    entrances_[kind] = &port.entrance_for(static_cast<OpKind>(kind));
  }
}

Status Settle::await_resume() const { return check(*port_, ticket_); }

bool SettleAll::await_ready() const {
  port_->wait_begins(tickets_, Until::all);
  for (const Ticket ticket : tickets_) {
    if (!port_->settled(ticket)) {
      return false;
    }
  }
  return true;
}

void SettleAll::await_resume() const {
  for (const Ticket ticket : tickets_) {
    check(*port_, ticket);
  }
}

Slice Rank::allocate(Purpose purpose, DType dtype, int64_t elements, DeviceId device,
                     uint8_t home_queue) {
  const BufferId buffer = port_->allocate({dtype, purpose, device, elements, home_queue});
  return {buffer, dtype, 0, elements};
}

Ticket Rank::compute(const KernelCall& call, const ComputeOptions& options) {
  const OpLists lists{options.after.tickets(), call.reads, call.writes, {}, call.scalars};
  Op op;
  op.kind = OpKind::compute;
  op.dtype = call.computes_in       ? *call.computes_in
             : !call.writes.empty() ? call.writes.front().dtype
                                    : DType::uint8;
  op.stream = options.on;
  op.kernel = call.kernel;
  op.tag = call.layer;
  op.site = options.site;
  op.bytes = call.memory_traffic;
  op.work = call.work;
  op.lists = &lists;
  return submit(op);
}

Ticket Rank::compute(Time duration, const ComputeOptions& options) {
  OpLists lists;
  lists.after = options.after.tickets();
  Op op;
  op.kind = OpKind::compute;
  op.kernel = Kernel::timed;
  op.stream = options.on;
  op.site = options.site;
  op.work = duration.count();
  op.lists = lists.after.empty() ? nullptr : &lists;
  return submit(op);
}

Ticket Rank::copy(const Slice& from, const Slice& to, const CommunicationOptions& options) {
  return communicate(communication(OpKind::copy, world_group, from), &from, &to, {}, options);
}

Ticket Rank::event(const ComputeOptions& options) {
  OpLists lists;
  lists.after = options.after.tickets();
  Op op;
  op.kind = OpKind::event;
  op.stream = options.on;
  op.site = options.site;
  op.lists = &lists;
  return submit(op);
}

Ticket Rank::host(Time duration, SiteId site) {
  Op op;
  op.kind = OpKind::host;
  op.work = duration.count();
  op.site = site;
  return submit(op);
}

Ticket Rank::communicate(Op op, const Slice* read, const Slice* write,
                         std::span<const int64_t> splits, const CommunicationOptions& options) {
  OpLists lists;
  lists.after = options.after.tickets();
  lists.splits = splits;
  if (read != nullptr && read->buffer != no_buffer) {
    lists.reads = {read, 1};
  }
  if (write != nullptr && write->buffer != no_buffer) {
    lists.writes = {write, 1};
  }
  op.stream = options.on;
  op.site = options.site;
  op.lists = &lists;
  return submit(op);
}

Ticket Rank::all_reduce(GroupId group, const Slice& data, Reduction reduction,
                        const CommunicationOptions& options) {
  Op op = communication(OpKind::all_reduce, group, data);
  op.reduction = reduction;
  return communicate(op, &data, &data, {}, options);
}

Ticket Rank::reduce(GroupId group, const Slice& data, Reduction reduction, int32_t root,
                    const CommunicationOptions& options) {
  Op op = rooted(OpKind::reduce, group, data, root);
  op.reduction = reduction;
  return communicate(op, &data, &data, {}, options);
}

Ticket Rank::broadcast(GroupId group, const Slice& data, int32_t root,
                       const CommunicationOptions& options) {
  return communicate(rooted(OpKind::broadcast, group, data, root), &data, &data, {}, options);
}

Ticket Rank::all_gather(GroupId group, const Slice& part, const Slice& whole,
                        const CommunicationOptions& options) {
  return communicate(communication(OpKind::all_gather, group, part), &part, &whole, {}, options);
}

Ticket Rank::gather(GroupId group, const Slice& part, const Slice& whole, int32_t root,
                    const CommunicationOptions& options) {
  const Slice* result = id() == root ? &whole : nullptr;
  return communicate(rooted(OpKind::gather, group, part, root), &part, result, {}, options);
}

Ticket Rank::scatter(GroupId group, const Slice& whole, const Slice& part, int32_t root,
                     const CommunicationOptions& options) {
  const Slice* source = id() == root ? &whole : nullptr;
  return communicate(rooted(OpKind::scatter, group, part, root), source, &part, {}, options);
}

Ticket Rank::reduce_scatter(GroupId group, const Slice& whole, const Slice& part,
                            Reduction reduction, std::span<const int64_t> splits,
                            const CommunicationOptions& options) {
  Op op = communication(OpKind::reduce_scatter, group, whole);
  op.reduction = reduction;
  return communicate(op, &whole, &part, splits, options);
}

Ticket Rank::all_to_all(GroupId group, const Slice& send, const Slice& receive,
                        std::span<const int64_t> splits, const CommunicationOptions& options) {
  return communicate(communication(OpKind::all_to_all, group, send), &send, &receive, splits,
                     options);
}

Ticket Rank::barrier(GroupId group, const CommunicationOptions& options) {
  return communicate(communication(OpKind::barrier, group, Slice{}), nullptr, nullptr, {}, options);
}

Ticket Rank::send(GroupId group, const Slice& data, int32_t destination, int32_t tag,
                  const CommunicationOptions& options) {
  return communicate(point_to_point(OpKind::send, group, data, destination, tag), &data, nullptr,
                     {}, options);
}

Ticket Rank::receive(GroupId group, const Slice& data, int32_t source, int32_t tag,
                     const CommunicationOptions& options) {
  return communicate(point_to_point(OpKind::recv, group, data, source, tag), nullptr, &data, {},
                     options);
}

Rank::NewGroup Rank::new_group(GroupId parent, std::span<const int64_t> members,
                               const CommunicationOptions& options) {
  const GroupId made{next_group_++};
  Op op = communication(OpKind::new_group, parent, Slice{});
  op.tag = static_cast<int32_t>(made.value);
  return {made, communicate(op, nullptr, nullptr, members, options)};
}

Rank::NewGroup Rank::split_group(GroupId parent, int32_t color,
                                 const CommunicationOptions& options) {
  const GroupId made{next_group_++};
  Op op = communication(OpKind::new_group, parent, Slice{});
  op.tag = static_cast<int32_t>(made.value);
  op.peer = color;
  op.flags = flag_color;
  return {made, communicate(op, nullptr, nullptr, {}, options)};
}

// Its splits say the rule, for a world that runs one rank for many.
Rank::NewGroup Rank::split_group(GroupId parent, const ColorRule& rule,
                                 const CommunicationOptions& options) {
  const GroupId made{next_group_++};
  Op op = communication(OpKind::new_group, parent, Slice{});
  op.tag = static_cast<int32_t>(made.value);
  op.peer = rule.of(id());
  op.flags = flag_color;
  const int64_t said[] = {rule.block, rule.place};
  return {made, communicate(op, nullptr, nullptr, said, options)};
}

Task<uint32_t> Rank::settle_any(std::vector<Ticket> tickets, SiteId site) {
  ensure(!tickets.empty(), "settle_any waits for at least one ticket");
  port_->wait_begins(tickets, Until::any);
  bool ready = false;
  for (const Ticket ticket : tickets) {
    ready = ready || port_->settled(ticket);
  }
  if (!ready) {
    struct AnySettled {
      Port* port;
      const std::vector<Ticket>* tickets;
      bool await_ready() const { return false; }
      void await_suspend(std::coroutine_handle<Task<uint32_t>::promise_type> handle) const {
        Lane& lane = *handle.promise().lane;
        port->resume_when_settled(*tickets, Until::any, lane);
        lane.wait();
      }
      void await_resume() const {}
    };
    const AnySettled any{port_, &tickets};
    co_await any;
  }
  uint32_t first = 0;
  while (!port_->settled(tickets[first])) {
    ++first;
  }
  const auto alternatives = static_cast<uint32_t>(tickets.size());
  const uint32_t chosen = port_->choose(site, ChoiceKind::settle_any, alternatives, first);
  const Settle settled(*port_, tickets[chosen]);
  co_await settled;
  co_return chosen;
}

GroupedCall& GroupedCall::send(GroupId group, const Slice& data, int32_t destination, int32_t tag) {
  return add(point_to_point(OpKind::send, group, data, destination, tag), data, Slice{});
}

GroupedCall& GroupedCall::receive(GroupId group, const Slice& data, int32_t source, int32_t tag) {
  return add(point_to_point(OpKind::recv, group, data, source, tag), Slice{}, data);
}

GroupedCall& GroupedCall::add(const Op& op, const Slice& read, const Slice& write,
                              std::span<const int64_t> splits) {
  constexpr size_t usual = 2;  // a send and a receive
  if (parts_.empty()) {
    parts_.reserve(usual);
  }
  Part& part = parts_.emplace_back();
  part.op = op;
  part.read = read;
  part.write = write;
  part.splits.assign(splits.begin(), splits.end());
  return *this;
}

Ticket GroupedCall::submit() {
  ensure(!parts_.empty(), "a grouped call holds at least one operation");
  std::vector<Op> ops;
  ops.reserve(parts_.size());
  for (Part& part : parts_) {
    part.lists.after = options_.after.tickets();
    part.lists.splits = part.splits;
    if (part.read.buffer != no_buffer) {
      part.lists.reads = {&part.read, 1};
    }
    if (part.write.buffer != no_buffer) {
      part.lists.writes = {&part.write, 1};
    }
    Op& op = ops.emplace_back(part.op);
    op.stream = options_.on;
    if (op.site == no_site) {
      op.site = options_.site;
    }
    op.lists = &part.lists;
  }
  return rank_->port_->submit(ops);
}

}  // namespace lockstep
