#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "backend/gloo/mailbox.hpp"
#include "backend/gloo/matcher.hpp"
#include "backend/gloo/submission.hpp"
#include "backend/gloo/world.hpp"
#include "backend/rank/progress.hpp"
#include "backend/rank/ticket_table.hpp"
#include "model/network/execute.hpp"

namespace lockstep::backend {

/// State shared by all ranks of a run.
struct RunShared {
  RunOptions options;
  GlooOptions gloo;
  uint64_t run = 0;                     ///< of this fleet; part of every slot
  JournalFollower* follower = nullptr;  ///< of the only rank; null: none
  Progress progress{};
  std::atomic<int64_t> eager_sent{0};
  std::atomic<int64_t> eager_received{0};
};

/// A lane that waits for tickets.
struct Waiter {
  std::vector<Ticket> tickets;
  Until until = Until::all;
  Lane* lane = nullptr;
};

/// State that the threads of one rank share: its host thread, its stream workers and the watching
/// thread. Everything is guarded by `mutex` but what says otherwise.
class RankState final : public Operands {
 public:
  RankState(int32_t rank_number, RunShared& shared_by_all, std::shared_ptr<gloo::Context> context);

  // Lock by themselves.
  Values load(const Slice& from) override;
  void store(const Slice& to, const Values& values) override;
  bool carries_values(const Slice& slice);
  /// The content of the slice, or a copy of it; empty if its buffer carries no values.
  ValueView view(const Slice& of);
  /// Calls `fill` with memory that the slice then holds; not where its buffer carries no values.
  void change(const Slice& slice, const std::function<void(std::span<std::byte>)>& fill);
  void started(Ticket ticket);
  /// Notes what the exception that is being handled says about a kernel; the first one is kept.
  void note_broken(SiteId site);
  /// Ends the submission, whose operands are held no longer.
  void settle(const Submission& submission, const Status& status);
  void add_group(GroupId group, uint64_t key, std::vector<int32_t> members);
  void keep(std::unique_ptr<Message> eager_send);
  uint64_t next_payload_slot();
  /// Ends all waits of this rank; pending tickets get `outcome`. Returns what its lanes waited for.
  std::vector<WaitingLane> abort(Outcome outcome);
  bool any_failed();
  /// These connections serve no further run.
  void connection_broke();

  // Called with `mutex` held.
  /// Moves waiting lanes whose tickets have settled to `ready`.
  void wake_lanes();
  /// Settles a promise.
  void fulfil(Ticket promise);

  const int32_t rank;
  RunShared& shared;                              ///< constant, atomic or locked by itself
  Mailbox mailbox;                                ///< locks by itself
  Matcher matcher;                                ///< locks by itself
  const std::unique_ptr<KernelExecutor> kernels;  ///< null: the reference arithmetic
  ValueStore* const kept_values;                  ///< of the kernels; null: values are in `buffers`

  std::mutex mutex;
  std::condition_variable host_wakes;
  TicketTable tickets;
  BufferTable buffers;
  std::map<GroupId, Communicator> groups;
  std::deque<Lane*> ready;
  std::vector<Waiter> waiters;
  std::optional<LaneId> held_back;  ///< the lane whose submission waits for the launch queue
  int64_t in_flight = 0;            ///< submissions that have not settled
  bool aborted = false;
  bool failed = false;                               ///< an operation ended as failed
  std::optional<RankEnd> broken;                     ///< what the first kernel that broke said
  std::vector<std::condition_variable*> dependents;  ///< of workers that wait for tickets
  std::vector<std::unique_ptr<Message>> eager_sends;
  uint64_t messages = 0;

 private:
  void wake_all();
};

}  // namespace lockstep::backend
