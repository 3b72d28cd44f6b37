#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "sim/agenda.hpp"
#include "sim/collectives.hpp"
#include "sim/communicators.hpp"
#include "sim/in_flight.hpp"
#include "sim/launch_limit.hpp"
#include "sim/link_faults.hpp"
#include "sim/messages.hpp"
#include "sim/periods.hpp"
#include "sim/rank_state.hpp"
#include "sim/shared_links.hpp"
#include "sim/shared_results.hpp"
#include "sim/simulation_options.hpp"
#include "sim/thread_watch.hpp"
#include "sim/transfers.hpp"

namespace lockstep::sim {

/// The simulated world: resolves submissions to times. An operation whose dependencies are known is
/// timed at once; only what depends on others (communication, shared links) and lanes that wait
/// become events.
class Engine {
 public:
  Engine(const RunOptions& options, const SimulationOptions& simulation, Journal* journal);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Those that are simulated: all, or one of each class.
  std::vector<RankState> ranks;
  SharedResults shared_results;

  int64_t operations() const { return operations_; }
  /// Without those of ranks that others stand for.
  int64_t simulated_operations() const { return simulated_operations_; }
  /// When the last operation or host thread ends.
  Time latest() const;
  /// Why the classes of RunOptions do not hold; empty: nothing has contradicted them.
  const std::string& ranks_differ() const { return ranks_differ_; }
  /// A rank has run out of memory, and nothing else was asked: what is under way never ended.
  bool ended_early() const { return ends_; }
  /// Numbers of the link faults that slowed something.
  const std::set<int32_t>& struck_links() const { return link_faults_.struck(); }

  /// Gives every rank its program and runs until nothing can happen any more.
  void run(const ProgramOfRank& program);
  /// Ends the programs that wait forever. What their unwinding still does changes nothing: neither
  /// memory nor the journal.
  void unwind();

  // For the ports.
  Ticket submit(RankState& rank, std::span<const Op> ops);
  Ticket promise(RankState& rank);
  void fulfil(RankState& rank, Ticket promise);
  bool settled(const RankState& rank, Ticket ticket) const;
  Status status(const RankState& rank, Ticket ticket) const;
  void wait_begins(RankState& rank, std::span<const Ticket> tickets, Until until);
  void suspend(RankState& rank, std::span<const Ticket> tickets, Until until, LaneState& lane);
  Lane& start_lane(RankState& rank, Program program);
  void reached(RankState& rank, const Position& position);
  /// The rank has taken an optimizer step.
  void note_step(RankState& rank) const {
    if (simulation_.steps != nullptr) {
      mark_step(rank, *simulation_.steps);
    }
  }
  PeriodsLeftOut begins_period(RankState& rank, const PeriodStart& start);
  /// From its lane 0.
  void follow_periods(RankState& rank, PeriodFollower* follower);
  /// Waits forever: for tickets, or for room in the launch queue.
  bool stuck(const RankState& rank, LaneState& lane) {
    // `holds` first: it forgets holds that ended
    return LaunchLimit::holds(rank, lane) || !lane.lane.done();
  }

  /// How much is kept of what has been submitted: bounded by what is in flight, however long the
  /// programs run.
  struct Kept {
    size_t parts = 0;
    size_t waiters = 0;
    size_t tickets = 0;
    size_t buffers = 0;
    bool operator==(const Kept&) const = default;
  };
  Kept kept() const;

 private:
  void make_rank(uint32_t index);
  bool must_stop(uint64_t turn) const;
  void handle(const Agenda::Entry& event);

  // Lanes (lanes.cpp).
  void resume(RankState& rank, LaneState& lane, Time time);
  void end_lane(RankState& rank, LaneState& lane);

  // Submissions (submit.cpp).
  void submit_part(RankState& rank, LaneState& lane, const Op& op, Ticket ticket);
  Time finish_of_local(RankState& rank, const Op& op, Ticket ticket, Time ready);
  void compute_values(RankState& rank, const Op& op);
  /// Called where an exception of a kernel is being handled.
  static void note_broken(RankState& rank, SiteId site);

  // Operations that waited (engine.cpp).
  void drain();
  void launch(uint32_t index);
  void launch_kernel(uint32_t index);
  void begin_transfer(const Transfer& transfer);
  void end_transfer(const Transfer& transfer, Time finish);

  RunOptions options_;
  SimulationOptions simulation_;
  Journal* journal_;
  FingerprintBoard board_;
  std::string ranks_differ_;
  bool ends_ = false;  ///< by what a rank ended with
  int64_t operations_ = 0;
  int64_t simulated_operations_ = 0;
  uint64_t roundings_ = 0;  ///< drawn, of SimulationOptions::rounds_otherwise
  LaunchLimit launch_limit_;
  Agenda agenda_;
  ThreadWatch thread_watch_;
  InFlight in_flight_;
  Communicators communicators_;
  Collectives collectives_;
  Messages messages_;
  SharedLinks links_;
  LinkFaults link_faults_;
  Transfers transfers_;
  FaultHorizon fault_horizon_;
  Periods periods_;
};

}  // namespace lockstep::sim
