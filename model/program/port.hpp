#pragma once

#include <cstdint>
#include <span>

#include "model/core/buffer.hpp"
#include "model/core/failure.hpp"
#include "model/core/op.hpp"
#include "model/core/place.hpp"
#include "model/core/position.hpp"
#include "model/core/process_signal.hpp"
#include "model/core/values.hpp"
#include "model/program/repetition.hpp"
#include "model/program/shared_values.hpp"
#include "model/program/task.hpp"

namespace lockstep {

enum class Until : uint8_t { all, any };

/// The kind of a choice.
/// (branch: which way an `if` went, 1 = then; repeat: how often a `repeat` will run; unknown: the
/// value of data that a scenario does not give.)
enum class ChoiceKind : uint8_t {
  any_source,
  settle_any,
  branch,
  repeat,
  unknown,
  statement,  ///< no choice but a mark: 1 = a statement of the user begins, 0 = it has ended
  step,       ///< no choice but a mark: the trainer has taken an optimizer step
  ready_set,  ///< how many of a rank's new tensors a cycle of a negotiation takes in
};
std::string_view name_of(ChoiceKind kind);

/// The world as one rank's host program sees it: the narrow waist. Implemented by the simulator and
/// by every real backend, wrapped by decorators (decorators.hpp). Programs do not call it: they
/// hold a Rank. A port is used from one host thread; it outlives all lanes of its rank.
///
/// Two orders: `OpLists::after` orders the device, `resume_when_settled` orders the host.
class Port {
 public:
  virtual ~Port() = default;

  virtual const Place& place() const = 0;
  /// The lane that runs now.
  virtual LaneId lane() const = 0;

  /// Memory is accounted here, in host order, as by a caching allocator.
  /// Throws OutOfMemory when the device's capacity is exceeded.
  virtual BufferId allocate(const BufferSpec& spec) = 0;
  /// `site`: the statement that gave the buffer up, or none. Operations that were submitted before
  /// may still use it: the world keeps it for them, where a caching allocator need not.
  virtual void release(BufferId buffer, SiteId site) = 0;
  /// The slice must be within the buffer and of its type.
  virtual void write(const Slice& to, const Values& values) = 0;
  /// The slice's writers must have settled. Empty when the buffer carries no values.
  virtual Values read(const Slice& from) = 0;
  /// The same; where ranks share a memory, what they hold alike is handed out without a copy.
  virtual SharedValues read_shared(const Slice& from) {
    return std::make_shared<const Values>(read(from));
  }
  /// The result of a pure function; where ranks share a thread, of all that ask the first computes.
  virtual std::shared_ptr<const void> result_of(const PureCall& call) { return call.compute(); }

  /// Puts operations into their streams and returns at once: never waits for a peer. More than one:
  /// a grouped call (ncclGroupStart/End), no order inside, one ticket for all.
  virtual Ticket submit(std::span<const Op> ops) = 0;
  /// Where a submission of one operation of this kind may go instead: the first port, from here to
  /// the world, that it concerns. The same over the whole life of the port.
  virtual Port& entrance_for(OpKind) { return *this; }

  /// Said by an awaiter before it asks: from here the host waits. Recorded; changes nothing.
  virtual void wait_begins(std::span<const Ticket> tickets, Until until) = 0;
  /// A pure question; only the awaiter asks it.
  virtual bool settled(Ticket ticket) const = 0;
  /// Resumes the lane once all (any) of the tickets have settled; the lane suspends after the call.
  /// The tickets are copied.
  virtual void resume_when_settled(std::span<const Ticket> tickets, Until until, Lane& lane) = 0;
  virtual Status status(Ticket ticket) const = 0;
  /// Whether a host may come to a later time than that until which the world knows what happened.
  virtual bool runs_ahead() const { return false; }

  /// A second host thread of this rank.
  virtual Lane& start_lane(Program program) = 0;
  /// A ticket that is settled by hand: lane to lane, host to device.
  virtual Ticket promise() = 0;
  virtual void fulfil(Ticket promise) = 0;

  /// A free choice among `alternatives` (> 0). `local` is what this world would take; the answer is
  /// recorded and may be overruled by a replay or an explorer.
  virtual uint32_t choose(SiteId site, ChoiceKind kind, uint32_t alternatives, uint32_t local) = 0;

  /// A trainer reports the position of the program. This is recorded nowhere and changes
  /// nothing, unless the world (or a decorator) has something in store for this place. Gives the
  /// signal that has come since: Python runs its handlers between two steps of the program, never
  /// within a call that waits.
  virtual ProcessSignal reached(const Position&) { return ProcessSignal::none; }

  /// A loop stands at the beginning of a period. Gives which periods the world has left out because
  /// it has proved what they would do: the program goes on that many periods later. A world that
  /// runs for real leaves out none.
  virtual PeriodsLeftOut begins_period(const PeriodStart&) { return {}; }
  /// The program of this rank, which runs on its lane 0, follows the periods of rank 0 from now on;
  /// null: no longer.
  virtual void follow_periods(PeriodFollower* follower) { static_cast<void>(follower); }
  /// What is left of the period of this level is the same in periods of every kind.
  virtual void ends_period_alike(int32_t level) { static_cast<void>(level); }
};

}  // namespace lockstep
