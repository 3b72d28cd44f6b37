#include "cli/render/timeline/host_spans.hpp"

#include <algorithm>

#include "cli/render/timeline/trace_file.hpp"
#include "model/user_program/sites.hpp"

namespace lockstep::cli {

namespace {

bool is_users(const Site* site) {
  return site != nullptr && !site->file.empty() && !site->hook.empty();
}

}  // namespace

HostSpans::HostSpans(const Journal& journal, int32_t rank, int32_t lane)
    : journal_(journal),
      rows_(journal.lane(rank, lane)),
      rank_(rank),
      lane_{static_cast<uint16_t>(lane)} {}

Span HostSpans::span(Span::Kind kind, const Row& row, Time start, Time finish) const {
  Span made;
  made.kind = kind;
  made.track = host_tracks + lane_.value;
  made.start = start;
  made.finish = finish;
  made.row = row;
  made.lane = lane_;
  return made;
}

void HostSpans::leave_statement() {
  if (statement_) {
    over_.push_back(*statement_);
    statement_.reset();
  }
}

void HostSpans::leave_hook(Time finish) {
  if (hook_) {
    hook_->finish = finish;
    over_.push_back(*hook_);
    hook_.reset();
  }
}

// What stands nowhere belongs to whatever it follows.
void HostSpans::enter(SiteId id) {
  const Site* site = journal_.sites.find(id);
  if (site == nullptr) {
    return;
  }
  const bool here = is_users(site) && !runs_outside_of_its_hook(*site);
  const Site* open = hook_ ? journal_.sites.find(hook_->row.site) : nullptr;
  if (open != nullptr && (!here || open->hook != site->hook)) {
    leave_hook(clock_);
  }
}

void HostSpans::begin_statement(const Row& row, Time start, Time finish) {
  const Site* site = journal_.sites.find(row.site);
  if (!is_users(site)) {
    return;
  }
  if (!hook_ && !runs_outside_of_its_hook(*site)) {
    hook_ = span(Span::Kind::hook, row, start, finish);
  }
  statement_ = span(Span::Kind::statement, row, start, finish);
}

// A statement may put marks into streams before and behind its operation.
bool HostSpans::continues_statement(const Row& row) const {
  return statement_ && statement_->row.row == RowKind::op && statement_->row.site == row.site &&
         (statement_->row.kind == OpKind::event || row.kind == OpKind::event);
}

void HostSpans::submit(const Row& row) {
  submitted_[row.sequence % remembered] = row;
  const Completion done = rows_.completion(row.sequence);
  if (continues_statement(row)) {
    clock_ = std::max(clock_, done.issue);
    statement_->finish = clock_;
    if (statement_->row.kind == OpKind::event) {
      statement_->row = row;
    }
    last_of_statement_ = row.sequence;
    return;
  }
  leave_statement();
  enter(row.site);
  Time start = clock_;
  if (row.kind == OpKind::host) {
    start = std::max(clock_, done.start);
    clock_ = std::max(start, done.finish);
  } else {
    clock_ = start = std::max(clock_, done.issue);
  }
  last_of_statement_ = row.sequence;
  begin_statement(row, start, clock_);
}

void HostSpans::choose(const Row& row) {
  const auto kind = static_cast<ChoiceKind>(row.tag);
  if (kind == ChoiceKind::branch || kind == ChoiceKind::repeat) {
    leave_statement();
    enter(row.site);
    begin_statement(row, clock_, clock_);
  }
}

void HostSpans::settle(const Row& row) {
  waits_.push_back({row.sequence, LaneId{static_cast<uint16_t>(row.peer)}});
  until_any_ = row.tag == 1;
}

Row HostSpans::awaited(Ticket ticket) const {
  const Row& row = submitted_[ticket.sequence % remembered];
  return ticket.lane == lane_ && row.sequence == ticket.sequence ? row : Row{};
}

bool HostSpans::awaits_statement(Ticket ticket) const {
  return statement_ && statement_->row.row == RowKind::op && ticket.lane == lane_ &&
         ticket.sequence >= statement_->row.sequence && ticket.sequence <= last_of_statement_;
}

void HostSpans::end_wait() {
  if (waits_.empty()) {
    return;
  }
  Ticket decisive{};
  Time finish = until_any_ ? never : Time{};
  bool by_statement = false;
  for (const Ticket ticket : waits_) {
    const Completion done = journal_.lane(rank_, ticket.lane.value).completion(ticket.sequence);
    by_statement = by_statement || awaits_statement(ticket);
    const bool known = done.outcome != Outcome::pending;  // a promise has no times of its own
    if (known && (until_any_ ? done.finish < finish : done.finish > finish)) {
      finish = done.finish;
      decisive = ticket;
    }
  }
  waits_.clear();
  if (!decisive || finish <= clock_) {
    return;
  }
  if (by_statement) {
    statement_->finish = finish;
  } else if (nanoseconds(finish) > nanoseconds(clock_)) {
    leave_statement();
    over_.push_back(span(Span::Kind::wait, awaited(decisive), clock_, finish));
  }
  clock_ = finish;
}

void HostSpans::add(const Row& row) {
  if (row.row == RowKind::settle) {
    if (!waits_.empty() && until_any_ != (row.tag == 1)) {
      end_wait();
    }
    settle(row);
    return;
  }
  end_wait();
  if (row.row == RowKind::op) {
    const bool part = submitted_[row.sequence % remembered].sequence == row.sequence;
    if (!part) {
      submit(row);
    }
  } else if (row.row == RowKind::choice) {
    choose(row);
  }
}

void HostSpans::leave_out(int64_t steps, Time time) {
  end_wait();
  leave_statement();
  leave_hook(clock_);
  Span repeated = span(Span::Kind::repeated, {}, clock_, clock_ + time);
  repeated.number = steps;
  over_.push_back(repeated);
  clock_ += time;
}

void HostSpans::end(const WaitingLane* waiting) {
  if (waiting == nullptr) {
    end_wait();
    leave_statement();
    leave_hook(clock_);
    return;
  }
  Ticket hangs{};
  bool by_statement = false;
  for (const Ticket ticket : waiting->tickets) {
    const Completion done = journal_.lane(rank_, ticket.lane.value).completion(ticket.sequence);
    by_statement = by_statement || awaits_statement(ticket);
    if (done.outcome == Outcome::pending) {
      hangs = hangs ? hangs : ticket;
    } else if (waiting->until == Until::all) {
      clock_ = std::max(clock_, done.finish);
    }
  }
  if (by_statement) {
    statement_->finish = never;
    leave_statement();
  } else {
    leave_statement();
    over_.push_back(span(Span::Kind::wait, awaited(hangs), clock_, never));
  }
  leave_hook(never);
}

}  // namespace lockstep::cli
