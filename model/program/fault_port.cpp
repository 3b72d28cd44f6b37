#include "model/program/fault_port.hpp"

#include <algorithm>
#include <cmath>

#include "model/core/ensure.hpp"

namespace lockstep {

namespace {

// A lost group creation would leave its own rank without the group, which no lost message does.
bool sends_message(const Op& op) {
  return op.kind == OpKind::send || (is_collective(op.kind) && op.kind != OpKind::new_group);
}

Slice data_of(const Op& op) {
  const OpLists& lists = op.list();
  const auto& slices = lists.reads.empty() ? lists.writes : lists.reads;
  return slices.empty() ? Slice{} : slices.front();
}

bool ends_program(PlannedFault::Kind kind) {
  return kind == PlannedFault::Kind::exception || kind == PlannedFault::Kind::out_of_memory ||
         kind == PlannedFault::Kind::lost_rank;
}

}  // namespace

FaultPort::FaultPort(Port& inner, std::vector<PlannedFault> faults, const HostTime* host)
    : PortDecorator(inner), host_(host) {
  for (PlannedFault& fault : faults) {
    ensure(host != nullptr || fault.at.kind != Instant::Kind::time || fault.at.is_start(),
           "a world without time has no fault that begins at a time");
    entries_.push_back({std::move(fault)});
  }
}

std::set<int32_t> FaultPort::struck() const {
  std::set<int32_t> numbers;
  for (const Entry& entry : entries_) {
    if (entry.struck) {
      numbers.insert(entry.fault.number);
    }
  }
  return numbers;
}

Port& FaultPort::entrance_for(OpKind kind) {
  return entries_.empty() ? inner_.entrance_for(kind) : *this;
}

Ticket FaultPort::submit(std::span<const Op> ops) {
  if (entries_.empty()) [[likely]] {
    return inner_.submit(ops);
  }
  return submit_struck(ops);
}

Ticket FaultPort::submit_struck(std::span<const Op> ops) {
  begin_due();
  bool lost = false;
  double slowdown = 1;
  for (Entry& entry : entries_) {
    if (!is_due(entry, ops)) {
      continue;
    }
    entry.struck = true;
    switch (entry.fault.kind) {
      case PlannedFault::Kind::lost_message: lost = true; break;
      case PlannedFault::Kind::corrupted_value: corrupt(ops); break;
      case PlannedFault::Kind::slow_data: slowdown *= entry.fault.slowdown; break;
      default: end_program(entry, ops.front().site);
    }
  }
  if (lost) {
    return submit_without_messages(ops);
  }
  if (slowdown != 1) {
    Op slow = ops.front();
    slow.work = std::llround(static_cast<double>(slow.work) * slowdown);
    return inner_.submit({&slow, 1});
  }
  return inner_.submit(ops);
}

ProcessSignal FaultPort::reached(const Position& position) {
  ProcessSignal signal = inner_.reached(position);
  position_ = position;
  begin_due();
  for (Entry& entry : entries_) {
    const PlannedFault& fault = entry.fault;
    if (fault.submission != PlannedFault::at_position || !entry.begun || entry.struck ||
        (!fault.hook.empty() && fault.hook != position.hook)) {
      continue;
    }
    if (fault.kind == PlannedFault::Kind::termination) {
      entry.struck = true;
      signal = ProcessSignal::terminate;
    } else if (ends_program(fault.kind)) {
      end_program(entry, no_site);
    }
  }
  position_.hook = {};  // it lives no longer than the call
  return signal;
}

bool FaultPort::counts_submissions(const Entry& entry) {
  return entry.fault.kind != PlannedFault::Kind::slow_data &&
         entry.fault.submission != PlannedFault::at_position && !entry.struck;
}

// A program that follows others is not asked again: until its fault strikes, nothing repeats.
void FaultPort::follow_periods(PeriodFollower* follower) {
  const bool may_follow = std::ranges::none_of(entries_, counts_submissions);
  inner_.follow_periods(may_follow ? follower : nullptr);
}

PeriodsLeftOut FaultPort::begins_period(const PeriodStart& start) {
  const bool goes_on = std::ranges::any_of(entries_, [](const Entry& entry) {
    const bool is_signal = entry.fault.kind == PlannedFault::Kind::termination;
    return (counts_submissions(entry) && entry.begun) || (is_signal && entry.struck);
  });
  if (!goes_on) {
    return inner_.begins_period(start);
  }
  PeriodStart alone = start;
  alone.alike = 0;
  return inner_.begins_period(alone);
}

void FaultPort::begin_due() {
  for (Entry& entry : entries_) {
    if (!entry.begun && entry.fault.at.has_come(position_, now())) {
      entry.begun = true;
      entry.since = entry.fault.at.kind == Instant::Kind::time ? entry.fault.at.time : now();
    }
  }
}

bool FaultPort::counts(const PlannedFault& fault, std::span<const Op> ops) const {
  switch (fault.kind) {
    case PlannedFault::Kind::lost_message: return std::ranges::any_of(ops, sends_message);
    case PlannedFault::Kind::corrupted_value:
      return std::ranges::any_of(ops, [this](const Op& op) { return sends_data(op); });
    default: return true;
  }
}

bool FaultPort::is_due(Entry& entry, std::span<const Op> ops) const {
  const PlannedFault& fault = entry.fault;
  if (!entry.begun) {
    return false;
  }
  if (fault.kind == PlannedFault::Kind::slow_data) {
    return ops.front().site == data_loading_site &&
           (fault.duration == Time::max() || now() - entry.since < fault.duration);
  }
  return fault.submission != PlannedFault::at_position && counts(fault, ops) &&
         entry.seen++ == fault.submission;
}

// In a broadcast or a scatter only the root's data is sent.
bool FaultPort::sends_data(const Op& op) const {
  if (!sends_message(op) || op.bytes == Bytes{} || data_of(op).buffer == no_buffer) {
    return false;
  }
  const bool from_root = op.kind == OpKind::broadcast || op.kind == OpKind::scatter;
  return !from_root || op.peer == static_cast<int32_t>(place().rank.value);
}

void FaultPort::corrupt(std::span<const Op> ops) {
  const auto victim = std::ranges::find_if(ops, [this](const Op& op) { return sends_data(op); });
  const double minus_one = -1;
  const Slice data[] = {data_of(*victim)};
  const OpLists in_place{victim->list().after, {}, data, {}, {&minus_one, 1}};
  Op change;
  change.kind = OpKind::compute;
  change.kernel = Kernel::scale;
  change.stream = victim->stream;
  change.site = victim->site;
  change.lists = &in_place;
  inner_.submit({&change, 1});
}

// The rank still receives its data; without anything left, a mark keeps the stream's order and
// the count of tickets.
Ticket FaultPort::submit_without_messages(std::span<const Op> ops) {
  std::vector<Op> left;
  std::ranges::remove_copy_if(ops, std::back_inserter(left), sends_message);
  if (left.empty()) {
    Op nothing;
    nothing.stream = ops.front().stream;
    nothing.site = ops.front().site;
    left.push_back(nothing);
  }
  return inner_.submit(left);
}

void FaultPort::end_program(Entry& entry, SiteId otherwise) {
  entry.struck = true;
  const SiteId site = entry.fault.site != no_site ? entry.fault.site : otherwise;
  const std::string where = entry.fault.hook.empty() ? "" : " in " + entry.fault.hook;
  switch (entry.fault.kind) {
    case PlannedFault::Kind::exception: throw ProgramException(site, "injected exception" + where);
    case PlannedFault::Kind::out_of_memory:
      throw OutOfMemory(site, "out of memory, injected" + where);
    default: throw RankLost();
  }
}

}  // namespace lockstep
