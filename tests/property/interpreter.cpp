#include "tests/property/interpreter.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lockstep::test {

namespace {

constexpr StreamId helper_stream = stream(queue::first_named);

struct Group {
  GroupId id;
  std::vector<int32_t> members;
};

/// What one rank has while it goes through its steps.
class Machine {
 public:
  Machine(Rank& of, const BareProgram& of_program, Seen& to);

  Slice whole(int32_t buffer) const { return buffers[index(buffer)]; }
  Ticket& last(int32_t buffer) { return last_[index(buffer)]; }
  int32_t second(const Step& step) const {
    return step.buffer + 1 + step.other % (buffer_count - 1);
  }
  const Group& group(const Step& step) const {
    return groups[static_cast<size_t>(step.group) % groups.size()];
  }
  /// After everything that used the two buffers.
  After after(const Step& step) { return {last(step.buffer), last(second(step))}; }
  void use(const Step& step, Ticket ticket) {
    last(step.buffer) = ticket;
    last(second(step)) = ticket;
  }
  std::vector<Ticket> unsettled() const;
  void renew(int32_t buffer, Purpose purpose);

  Rank& rank;
  Seen& seen;
  DType dtype;
  std::vector<Group> groups;
  std::vector<Slice> buffers;

 private:
  static size_t index(int32_t buffer) { return static_cast<size_t>(buffer % buffer_count); }
  std::vector<Ticket> last_;
};

Machine::Machine(Rank& of, const BareProgram& of_program, Seen& to)
    : rank(of), seen(to), dtype(of_program.dtype), buffers(buffer_count), last_(buffer_count) {
  Group world{world_group, std::vector<int32_t>(static_cast<size_t>(rank.world_size()))};
  std::iota(world.members.begin(), world.members.end(), 0);
  groups.push_back(std::move(world));
  for (int32_t buffer = 0; buffer < buffer_count; ++buffer) {
    renew(buffer, Purpose::parameter);
  }
}

void Machine::renew(int32_t buffer, Purpose purpose) {
  const int64_t elements = part_elements * rank.world_size();
  Slice& slice = buffers[index(buffer)];
  slice = rank.allocate(purpose, dtype, elements);
  Values values(dtype, elements);
  for (int64_t i = 0; i < elements; ++i) {
    values.set(i, static_cast<double>((rank.id() + 2 * buffer + i) % 5));
  }
  rank.write(slice, values);
}

std::vector<Ticket> Machine::unsettled() const {
  std::vector<Ticket> tickets;
  for (const Ticket ticket : last_) {
    if (ticket) {
      tickets.push_back(ticket);
    }
  }
  return tickets;
}

std::vector<int64_t> rising_splits(size_t members) {
  std::vector<int64_t> splits(members);
  std::iota(splits.begin(), splits.end(), 1);
  return splits;
}

// Collectives

Ticket reduce_over(Machine& machine, const OwnStep& own, const CommunicationOptions& options) {
  const Step& step = own.step;
  const Group& group = machine.group(step);
  const auto members = static_cast<int64_t>(group.members.size());
  const Reduction reduction = own.flaw != Flaw::other_reduction  ? step.reduction
                              : step.reduction == Reduction::sum ? Reduction::max
                                                                 : Reduction::sum;
  const auto root = static_cast<size_t>(step.number + (own.flaw == Flaw::other_root ? 1 : 0));
  const int64_t less = own.flaw == Flaw::other_size ? 1 : 0;
  Rank& rank = machine.rank;
  const Slice a = machine.whole(step.buffer);
  const Slice b = machine.whole(machine.second(step));
  const Slice shorter = a.part(0, a.elements - less);
  if (step.act == Act::all_reduce) {
    return rank.all_reduce(group.id, shorter, reduction, options);
  }
  if (step.act == Act::reduce) {
    return rank.reduce(group.id, shorter, reduction, group.members[root % group.members.size()],
                       options);
  }
  const int64_t part = part_elements - less;
  if (step.number % 2 == 0) {
    return rank.reduce_scatter(group.id, a.part(0, part * members), b.part(0, part), reduction, {},
                               options);
  }
  std::vector<int64_t> splits = rising_splits(group.members.size());
  splits.back() -= less;
  const auto self = std::find(group.members.begin(), group.members.end(), rank.id());
  const int64_t own_part = splits[static_cast<size_t>(self - group.members.begin())];
  const int64_t all = std::accumulate(splits.begin(), splits.end(), int64_t{0});
  return rank.reduce_scatter(group.id, a.part(0, all), b.part(0, own_part), reduction, splits,
                             options);
}

Ticket move_over(Machine& machine, const OwnStep& own, const CommunicationOptions& options) {
  const Step& step = own.step;
  const Group& group = machine.group(step);
  const auto members = static_cast<int64_t>(group.members.size());
  const auto number = static_cast<size_t>(step.number + (own.flaw == Flaw::other_root ? 1 : 0));
  const int32_t root = group.members[number % group.members.size()];
  const int64_t part = part_elements - (own.flaw == Flaw::other_size ? 1 : 0);
  const Slice a = machine.whole(step.buffer);
  const Slice b = machine.whole(machine.second(step));
  Rank& rank = machine.rank;
  switch (step.act) {
    case Act::broadcast: return rank.broadcast(group.id, a.part(0, part * members), root, options);
    case Act::all_gather:
      return rank.all_gather(group.id, a.part(0, part), b.part(0, part * members), options);
    case Act::gather:
      return rank.gather(group.id, a.part(0, part), b.part(0, part * members), root, options);
    case Act::scatter:
      return rank.scatter(group.id, a.part(0, part * members), b.part(0, part), root, options);
    case Act::all_to_all:
      return rank.all_to_all(group.id, a.part(0, part * members), b.part(0, part * members), {},
                             options);
    default: return rank.barrier(group.id, options);
  }
}

Program make_group(Machine& machine, OwnStep own) {
  Rank& rank = machine.rank;
  Group made;
  Ticket ready;
  if (own.step.act == Act::split_group) {
    const int32_t colors = 1 + own.step.number % 2;
    for (int32_t id = rank.id() % colors; id < rank.world_size(); id += colors) {
      made.members.push_back(id);
    }
    const auto group = rank.split_group(world_group, rank.id() % colors, {.site = own.site});
    made.id = group.group;
    ready = group.ready;
  } else {
    made.members.assign(machine.groups[0].members.rbegin(), machine.groups[0].members.rend());
    const std::vector<int64_t> list(made.members.begin(), made.members.end());
    const auto group = rank.new_group(world_group, list, {.site = own.site});
    made.id = group.group;
    ready = group.ready;
  }
  co_await rank.settle(ready);
  machine.groups.push_back(made);
}

void release_in_flight(Machine& machine, const OwnStep& own) {
  machine.rank.release(machine.whole(own.step.buffer));
  machine.last(own.step.buffer) = {};
  machine.renew(own.step.buffer, Purpose::gradient);
}

Program communicate(Machine& machine, OwnStep own) {
  if (own.flaw == Flaw::raised) {
    throw ProgramException(own.site, "a planted exception");
  }
  if (own.flaw == Flaw::local_branch) {
    const uint32_t skips =
        machine.rank.choose(own.site, ChoiceKind::branch, 2, machine.rank.id() % 2 == 0 ? 1 : 0);
    if (skips == 1) {
      co_return;
    }
  }
  const CommunicationOptions options{communication_stream, machine.after(own.step), own.site};
  const Act act = own.step.act;
  const bool is_reduction =
      act == Act::all_reduce || act == Act::reduce || act == Act::reduce_scatter;
  if (act == Act::split_group || act == Act::reverse_group) {
    co_await make_group(machine, own);
  } else {
    machine.use(own.step, is_reduction ? reduce_over(machine, own, options)
                                       : move_over(machine, own, options));
    if (own.flaw == Flaw::released_early) {
      release_in_flight(machine, own);
    }
  }
}

// Work on the own device

void compute(Machine& machine, const OwnStep& own) {
  const Step& step = own.step;
  const Slice a = machine.whole(step.buffer);
  const Slice b = machine.whole(machine.second(step));
  const ComputeOptions options{compute_stream, machine.after(step), own.site};
  Rank& rank = machine.rank;
  switch (step.act) {
    case Act::fill:
      machine.use(step, apply(rank, Kernel::fill, {}, a, step.number + rank.id(), options));
      break;
    case Act::scale: machine.use(step, apply(rank, Kernel::scale, a, b, 2, options)); break;
    case Act::add: machine.use(step, apply(rank, Kernel::add, a, b, 0, options)); break;
    case Act::copy: machine.use(step, apply(rank, Kernel::copy, a, b, 0, options)); break;
    default: {
      const Ticket busy = rank.compute(Time(1'000'000 * (step.number + 1)), options);
      rank.host(Time(500'000 * (rank.id() + 1)), own.site);
      machine.use(step, rank.event({compute_stream, {busy}, own.site}));
    }
  }
}

Program offload(Machine& machine, OwnStep own) {
  Rank& rank = machine.rank;
  const Slice here = machine.whole(own.step.buffer);
  const Slice host = rank.allocate(Purpose::activation, machine.dtype, here.elements, host_device);
  const Ticket out = rank.copy(here, host, {copy_stream, machine.after(own.step), own.site});
  const Ticket in = rank.copy(host, here, {copy_stream, {out}, own.site});
  co_await rank.settle(in);
  rank.release(host);
  machine.use(own.step, in);
}

Program help(Rank& rank, Ticket asked, Ticket answered, Slice slice, double value, SiteId site) {
  co_await rank.settle(asked);
  const Ticket filled = apply(rank, Kernel::fill, {}, slice, value, {helper_stream, {asked}, site});
  co_await rank.settle(filled);
  rank.fulfil(answered);
}

Program ask_helper(Machine& machine, OwnStep own) {
  Rank& rank = machine.rank;
  const Ticket used = machine.last(own.step.buffer);
  co_await rank.settle(used);
  const Ticket asked = rank.promise();
  const Ticket answered = rank.promise();
  rank.start_lane(help(rank, asked, answered, machine.whole(own.step.buffer),
                       own.step.number + rank.id(), own.site));
  rank.fulfil(asked);
  co_await rank.settle(answered);
}

// Messages

void pass(Machine& machine, const OwnStep& own) {
  Rank& rank = machine.rank;
  const int32_t from = own.step.number % rank.world_size();
  const int32_t to = (from + 1 + own.step.other) % rank.world_size();
  const Slice a = machine.whole(own.step.buffer);
  const CommunicationOptions options{communication_stream, machine.after(own.step), own.site};
  if (from == to) {
    return;
  }
  if (rank.id() == from) {
    machine.use(own.step, rank.send(world_group, a, to, own.tag, options));
  } else if (rank.id() == to) {
    machine.use(own.step, rank.receive(world_group, a, from, own.tag, options));
  }
}

void grouped(Machine& machine, const OwnStep& own) {
  Rank& rank = machine.rank;
  const int32_t world = rank.world_size();
  const Slice a = machine.whole(own.step.buffer);
  const Slice b = machine.whole(machine.second(own.step));
  GroupedCall call(rank, {communication_stream, machine.after(own.step), own.site});
  if (own.step.act == Act::ring) {
    call.send(world_group, a, (rank.id() + 1) % world, own.tag)
        .receive(world_group, b, (rank.id() + world - 1) % world, own.tag);
  } else {
    for (const Slice& slice : {a, b}) {
      Op op;
      op.kind = OpKind::all_reduce;
      op.dtype = machine.dtype;
      op.reduction = Reduction::max;
      op.bytes = slice.bytes();
      call.add(op, slice, slice);
    }
  }
  machine.use(own.step, call.submit());
}

Program collect(Machine& machine, OwnStep own) {
  Rank& rank = machine.rank;
  const Slice part = machine.whole(own.step.buffer).part(0, part_elements);
  const CommunicationOptions options{communication_stream, machine.after(own.step), own.site};
  if (rank.id() != 0) {
    machine.use(own.step, rank.send(world_group, part, 0, own.tag, options));
    co_return;
  }
  for (int32_t turn = 1; turn < rank.world_size(); ++turn) {
    const Ticket came = rank.receive(world_group, part, any_rank, own.tag, options);
    const Status status = co_await rank.settle(came);
    machine.seen.push_back(Values::of(DType::int32, {status.source.value * 1.0}));
    machine.seen.push_back(rank.read(part));
    machine.use(own.step, came);
  }
}

// What the host waits for

Program look(Machine& machine, int32_t buffer) {
  const Ticket used = machine.last(buffer);
  co_await machine.rank.settle(used);
  machine.seen.push_back(machine.rank.read(machine.whole(buffer)));
}

Program wait(Machine& machine, OwnStep own) {
  Rank& rank = machine.rank;
  const Step& step = own.step;
  const std::vector<Ticket> tickets = machine.unsettled();
  if (step.act == Act::read) {
    co_await look(machine, step.buffer);
  } else if (step.act == Act::renew) {
    const Ticket used = machine.last(step.buffer);
    co_await rank.settle(used);
    rank.release(machine.whole(step.buffer));
    machine.renew(step.buffer, step.number % 2 == 0 ? Purpose::gradient : Purpose::metric);
  } else if (step.act == Act::settle) {
    co_await rank.settle_all(tickets);
  } else if (!tickets.empty()) {
    co_await rank.settle_any(tickets, own.site);
  }
}

// How many of the next steps are left out: the value is the same on all ranks.
Task<size_t> branch(Machine& machine, OwnStep own) {
  Rank& rank = machine.rank;
  const Slice first = machine.whole(own.step.buffer).part(0, 1);
  const Ticket agreed = rank.all_reduce(world_group, first, Reduction::max,
                                        {communication_stream, machine.after(own.step), own.site});
  machine.use(own.step, agreed);
  co_await rank.settle(agreed);
  const Values value = rank.read(first);
  const bool odd = std::fmod(value.number(0), 2) != 0;
  const uint32_t taken = rank.choose(own.site, ChoiceKind::branch, 2, odd ? 1 : 0);
  co_return taken == 1 ? 1 + static_cast<size_t>(own.step.number % 3) : 0;
}

Program take(Machine& machine, OwnStep own) {
  switch (own.step.act) {
    case Act::fill:
    case Act::scale:
    case Act::add:
    case Act::copy:
    case Act::work: compute(machine, own); break;
    case Act::copy_to_host_and_back: co_await offload(machine, own); break;
    case Act::pass: pass(machine, own); break;
    case Act::ring:
    case Act::grouped_reductions: grouped(machine, own); break;
    case Act::collect: co_await collect(machine, own); break;
    case Act::helper_lane: co_await ask_helper(machine, own); break;
    case Act::settle:
    case Act::settle_any:
    case Act::read:
    case Act::renew: co_await wait(machine, own); break;
    default: co_await communicate(machine, own);
  }
}

}  // namespace

Program interpret(Rank& rank, const BareProgram* program, Seen& seen) {
  Machine machine(rank, *program, seen);
  const std::vector<OwnStep> steps = steps_of(*program, rank.id());
  for (size_t i = 0; i < steps.size(); ++i) {
    const OwnStep own = steps[i];
    if (own.step.act == Act::branch) {
      i += co_await branch(machine, own);
    } else {
      co_await take(machine, own);
    }
  }
  for (int32_t buffer = 0; buffer < buffer_count; ++buffer) {
    co_await look(machine, buffer);
  }
}

}  // namespace lockstep::test
