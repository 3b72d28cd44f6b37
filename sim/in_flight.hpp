#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/program/journal.hpp"
#include "sim/agenda.hpp"
#include "sim/index_list.hpp"
#include "sim/part.hpp"
#include "sim/rank_state.hpp"
#include "sim/step_observer.hpp"
#include "sim/waiters.hpp"

namespace lockstep::sim {

/// Operations that have been submitted and have not finished: what each waits for, who waits for
/// it, and which can be launched. Tells the journal how they end. What depends on operations whose
/// end is known already is never in flight: its times are known at once.
class InFlight {
 public:
  /// All outlive it; `journal` and `steps` may be null.
  InFlight(std::vector<RankState>& ranks, Agenda& agenda, Journal* journal, StepObserver* steps);

  /// An operation that is being submitted: when it may start, as far as that is known.
  struct Pending {
    const Op& op;
    Ticket ticket;
    Time ready{};
    uint32_t part = no_index;  ///< made once it has to wait
    bool failed = false;
  };
  /// Takes what it comes behind into account: its stream, tickets, and holds of its lane.
  void find_dependencies(RankState& rank, const LaneState& lane, Pending& pending) {
    StreamState& stream = rank.stream(pending.op.stream);
    if (stream.known) {
      pending.ready = std::max(pending.ready, stream.finish);
    } else {
      stream.known = depend_on(rank, stream.tail, Waiters::Order::stream, pending);
      stream.finish = stream.known ? pending.ready : Time{};
    }
    for (const Ticket after : pending.op.list().after) {
      if (after) {
        depend_on(rank, after, Waiters::Order::after, pending);
      }
    }
    if (!lane.holds.empty()) [[unlikely]] {
      depend_on(rank, lane.holds.back().until, Waiters::Order::stream, pending);
    }
  }
  /// It does not end at once, though it may wait for nothing. Its part.
  uint32_t keep(RankState& rank, const Pending& pending);
  /// To be launched as soon as all that it comes behind is known.
  void await_launch(uint32_t index) {
    if (parts_[index].unresolved == 0) {
      ready_.push_back(index);
    }
  }

  Part& operator[](uint32_t index) { return parts_[index]; }
  /// Whether lists of many ranks that are alike are kept once.
  void share_lists(bool shares) { parts_.lists().share(shares); }
  size_t parts_known() const { return parts_.size(); }
  size_t waiters_known() const { return waiters_.size(); }

  /// Those that can be launched, the last to become so first.
  bool has_ready() const { return !ready_.empty(); }
  uint32_t take_ready() {
    const uint32_t index = ready_.back();
    ready_.pop_back();
    return index;
  }
  size_t ready_count() const { return ready_.size(); }
  /// All but the first `count` are launched in the order in which they became ready.
  void launch_in_order_behind(size_t count);

  /// The lane goes on once the ticket, whose end is not known, has ended.
  void wait(TicketState& ticket, LaneState& lane) {
    waiters_.add_lane(ticket, lane);
    ++lane.unresolved;
  }
  void forget_stale_waiters(TicketState& ticket, const LaneState& lane) {
    waiters_.forget_stale(ticket, lane);
  }

  /// SimulationOptions::contention.
  void slow_kernels_by(double contention) { contention_ = contention; }

  // Ends, of parts by their index and of tickets whose operation has none.
  void finish_part(uint32_t index, Time start, Time finish);
  void fail_part(uint32_t index);
  /// Without a word to the journal: of what has been told before.
  void forget_part(uint32_t index);
  void fail(RankState& rank, Ticket ticket, Time issue, Time ready);
  /// One operation of the submission has finished; with the last one its ticket is known.
  void close(RankState& rank, Ticket ticket, Time finish);
  /// The ticket's end is known: whoever waits for it need not any more.
  void resolve(TicketState& ticket, bool failed) {
    agenda_.lasts_until(ticket.finish);
    if (ticket.waiters != no_index) {
      resolve_waiters(ticket, failed);
    }
  }
  void tell(RankState& rank, Ticket ticket, Time issue, Time start, Time finish);
  /// Set where something has ended that a program, not a thread beside it, has submitted.
  bool& program_work_ended() { return program_work_ended_; }
  /// Of what never ends, at the end of the run.
  void tell_unfinished();

 private:
  friend class WorldState;

  bool depend_on(RankState& rank, Ticket ticket, Waiters::Order order, Pending& pending);
  bool has_failed(const RankState& rank, Ticket ticket) const;
  void note_beside_kernels(BesideKernels& beside, Time start, Time finish) const;
  uint32_t make_part(RankState& rank, const Op& op, Ticket ticket);
  void resolve_waiters(TicketState& ticket, bool failed);
  void resolve_lane(LaneState& lane, Time finish);

  std::vector<RankState>& ranks_;
  Agenda& agenda_;
  StepObserver* steps_;
  Journal* journal_;
  PartPool parts_;
  double contention_ = 0;
  bool program_work_ended_ = false;
  IndexList ready_;
  Waiters waiters_;
};

}  // namespace lockstep::sim
