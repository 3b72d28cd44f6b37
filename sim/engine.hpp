#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/core/instant.hpp"
#include "sim/cost.hpp"
#include "sim/event_queue.hpp"
#include "sim/flow_network.hpp"
#include "sim/part.hpp"
#include "sim/rank_state.hpp"
#include "sim/shared_results.hpp"
#include "sim/state_words.hpp"
#include "sim/step_observer.hpp"

namespace lockstep::sim {

/// A slow link: its effect, start and duration. Of a step or an epoch: from when the first rank's
/// host begins it. Latency is added to transfers that start while it lasts.
struct LinkFault {
  LinkIndex link = 0;
  Instant at{};
  Time duration = Time::max();
  double bandwidth =
      1;               ///< the remaining share, as a fraction > 0; of several faults, their product
  Time latency{};      ///< added
  int32_t number = 0;  ///< the caller's own, for Engine::struck_faults
};

struct SimulationOptions {
  const ComputeCost* compute = nullptr;        ///< required; outlives the run
  CommunicationCost* communication = nullptr;  ///< required; outlives the run
  Time launch_overhead{};                      ///< of each submission, on the host
  std::optional<uint64_t> tie_seed;            ///< draw the order of what happens at the same time
  /// Which of several waiting sends an any-source receive takes, by turn; empty: the first come.
  std::vector<uint32_t> any_source_choices;
  /// Defers any-source receives until the world is otherwise idle, so that every candidate sender
  /// is present.
  bool any_source_last = false;
  /// Filled in for an explorer, by turn: how many ways there were to go on, first those of taking a
  /// waiting send. A last 0: the run was left, because its choices lead to an order that others
  /// lead to as well. May be null.
  std::vector<uint32_t>* any_source_alternatives = nullptr;
  std::vector<std::pair<int32_t, Time>> lost_ranks;
  std::vector<LinkFault> link_faults;
  PositionObserver* observer = nullptr;  ///< observes the position of ranks; may be null
  StepObserver* steps = nullptr;         ///< likewise what optimizer steps change; outlives the run
  /// Whether periods of loops are left out once the world has come back to the same state.
  bool leaves_out_periods = false;
  /// Asked now and then whether to give up; null: never. Then ranks are left waiting.
  std::function<bool()> stop_asked{};
};

/// A world was to be given up before it was built.
class WorldGivenUp final : public std::runtime_error {
 public:
  WorldGivenUp() : std::runtime_error("the world was given up before it was built") {}
};

/// The k-th call of one communicator.
struct CallSlot {
  size_t arrived = 0;           ///< members, those that others stand for included
  uint32_t members = no_index;  ///< list of parts, first come first
  uint32_t last = no_index;     ///< of that list
  Time latest{};
};

/// A group in which collectives match by position.
struct Communicator {
  uint64_t key = 0;
  MemberList members;      ///< empty = all
  int64_t first_call = 0;  ///< of the window
  std::deque<CallSlot> window;
};

/// Sends and receives of one ordered pair with one tag that have found no partner.
struct Channel {
  std::deque<uint32_t> sends;
  std::deque<uint32_t> receives;
};

/// The simulated world: resolves submissions to times. An operation whose dependencies are known is
/// timed at once; only what depends on others (communication, shared links) and lanes that wait
/// become events.
class Engine {
 public:
  Engine(const RunOptions& options, const SimulationOptions& simulation, Journal* journal);
  ~Engine();

  /// Those that are simulated: all, or one of each class.
  std::vector<RankState> ranks;
  SharedResults shared_results;

  const RunOptions& options() const { return options_; }
  const SimulationOptions& simulation() const { return simulation_; }
  Journal* journal() { return journal_; }
  int64_t operations() const { return operations_; }
  /// Without those of ranks that others stand for.
  int64_t simulated_operations() const { return simulated_operations_; }
  /// When the last operation or host thread ends.
  Time latest() const;
  /// Why the classes of RunOptions do not hold; empty: nothing has contradicted them.
  const std::string& ranks_differ() const { return ranks_differ_; }
  /// Numbers of the link faults that slowed something.
  const std::set<int32_t>& struck_links() const { return struck_links_; }

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
  int64_t begins_period(RankState& rank, const PeriodStart& start);
  /// Waits forever: for tickets, or for room in the launch queue.
  bool stuck(const RankState& rank, LaneState& lane) {
    return held(rank, lane) || !lane.lane.done();  // `held` first: it forgets holds that ended
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

  const std::vector<int32_t>& members_of(const Communicator& communicator) const {
    return communicator.members.empty() ? world_ : communicator.members.ranks();
  }

 private:
  friend class WorldState;
  static constexpr uint64_t generation_mask = (1u << 28) - 1;
  static constexpr int lane_bits = 10;

  /// `index`: of its rank, and its own in the lowest bits.
  LaneState& lane_of(uint32_t index) {
    return *ranks[index >> lane_bits].lanes[index & ((1u << lane_bits) - 1)];
  }

  enum class EventKind : uint8_t {
    lane,
    flow_start,
    flow_finish,
    any_source,
    link_slow,
    link_free
  };

  void push(Time time, EventKind kind, uint64_t index, uint32_t generation = 0);
  void handle(const Event& event);
  void resume(RankState& rank, LaneState& lane, Time time);
  void end_lane(RankState& rank, LaneState& lane);

  // Dependencies (engine.cpp).
  void submit_part(RankState& rank, LaneState& lane, const Op& op, Ticket ticket);
  /// An operation that is being submitted: when it may start, as far as that is known.
  struct Pending {
    const Op& op;
    Ticket ticket;
    Time ready{};
    uint32_t part = no_index;  ///< made once it has to wait
    bool failed = false;
  };
  enum class Order : uint32_t { after, stream };
  bool depend_on(RankState& rank, Ticket ticket, Order order, Pending& pending);
  bool has_failed(const RankState& rank, Ticket ticket) const;

  // The launch queue (launch.cpp).
  void make_room(RankState& rank, LaneState& lane);
  void count_launched(RankState& rank);
  void hold(RankState& rank, LaneState& lane);
  bool held(const RankState& rank, LaneState& lane);
  uint32_t new_part(RankState& rank, const Op& op, Ticket ticket);
  void add_waiter(TicketState& state, uint32_t target, Order order);
  void forget_stale_waiters(TicketState& state, const LaneState& lane);
  void part_done(uint32_t index, Time start, Time finish);
  void forget_part(uint32_t index);
  void close_part(RankState& rank, Ticket ticket, Time finish);
  void resolve(TicketState& state, bool failed);
  void lane_resolved(LaneState& lane, Time finish);
  void drain();
  void launch(uint32_t index);
  void launch_kernel(uint32_t index);
  void fail_part(uint32_t index);
  void fail(RankState& rank, Ticket ticket, Time issue, Time ready);
  /// Called where an exception of a kernel is being handled.
  static void note_broken(RankState& rank, SiteId site);
  void tell(RankState& rank, Ticket ticket, Time issue, Time start, Time finish);
  void tell_unfinished();
  Time finish_of_local(RankState& rank, const Op& op, Time ready);
  void compute_values(RankState& rank, const Op& op);

  // Collectives (collectives.cpp).
  void enter_call(RankState& rank, Part& part);
  void arrive(uint32_t index);
  bool fits(const CallSlot& slot);
  bool amounts_fit(const CallSlot& slot, const std::vector<int32_t>& members);
  /// Of a call that all have entered, the part of each member, or of the rank that stands for it.
  std::vector<uint32_t> parts_by_member(uint32_t first, const std::vector<int32_t>& members);
  /// A root that others stand for, or one that stands for others, is no class of its own.
  /// The rank of this index in `ranks`.
  int32_t number_of(uint32_t index) const {
    return static_cast<int32_t>(ranks[index].place.rank.value);
  }
  uint32_t members_of(const Part& part) const;
  bool is_between_neighbours(const Part& part) const;
  bool is_alone(int32_t rank, const CallSlot& here);
  GroupState group_state(const RankState& rank, uint32_t communicator, int32_t member);
  void begin_call(CallSlot& here);
  void complete_call(uint32_t first, Time start, Time finish);
  void exchange_values(const std::vector<uint32_t>& parts, const std::vector<int32_t>& members);
  void make_groups(const std::vector<uint32_t>& parts, const Communicator& parent);
  uint32_t communicator_of(uint64_t key, const MemberList& members);
  CallSlot& slot(Communicator& communicator, int64_t call);
  void retire_calls(Communicator& communicator);

  // Point to point (messages.cpp).
  void post_message(uint32_t index);
  void message_ready(uint32_t index);
  void leave_eagerly(Part& part);
  void begin_message(uint32_t send, uint32_t receive);
  void deliver(uint32_t send, uint32_t receive, Time start, Time finish);
  void match_any_source(uint32_t destination);
  struct HeldReceive {
    size_t place = 0;                  ///< among the open receives of its rank
    std::vector<uint32_t> candidates;  ///< empty: there is none
  };
  HeldReceive held_receive_of(uint32_t destination);
  bool match_held_receiver();
  std::vector<uint32_t> candidates_of(uint32_t destination, const Part& receive);
  size_t take_source_choice(size_t ways);
  void take_from_any_source(uint32_t destination, size_t place, uint32_t send);
  Channel& channel(uint32_t communicator, int32_t source, int32_t destination, int32_t tag);

  // Periods that are left out (periods.cpp).
  /// The world when rank 0 began a period.
  struct KnownState {
    StateWords words;                          ///< empty: the world does not come back to it
    std::vector<int64_t> periods;              ///< that each rank had begun
    std::vector<SubmissionHistory> submitted;  ///< by rank
    Time time{};
  };
  static void note_submitted(RankState& rank, const Op& op);
  void find_cycle(int32_t level);
  /// `cycle_before`: where the cycle that ended with `before` had begun.
  bool is_cycle(int32_t level, const KnownState& cycle_before, const KnownState& before,
                const KnownState& now) const;
  int64_t begin_period(RankState& rank, int32_t level);

  // Slow links (link_faults.cpp).
  void begin_link_faults();
  void handle_link(uint32_t fault, bool begins);
  void strike(const TransferPlan& plan);

  // Transfers over shared links (engine.cpp).
  struct Transfer {
    TransferPlan plan;
    Time start{};
    uint32_t first = no_index;   ///< part; of a collective: list of members
    uint32_t second = no_index;  ///< the receive of a message
    bool collective = false;
    bool planned = false;  ///< `plan` is right
  };
  TransferPlan plan_of(const Transfer& transfer);
  bool stands_for_others(const Transfer& transfer);
  void begin_transfer(Time start, uint32_t first, uint32_t second, bool collective);
  void start_transfer(uint32_t index);
  void end_transfer(const Transfer& transfer, Time finish);
  void push_forecasts();

  RunOptions options_;
  SimulationOptions simulation_;
  Journal* journal_;
  EventQueue events_;
  FlowNetwork flows_;
  FingerprintBoard board_;
  PartPool parts_;
  std::vector<uint32_t> ready_parts_;
  struct Waiter {
    uint32_t next = no_index;
    uint32_t target = 0;      ///< part, or lane as in lane_of()
    uint32_t generation = 0;  ///< of the lane; of a part: its Order
    bool is_lane = false;
  };
  LocalPlaces<Waiter> waiters_;

  std::deque<Communicator> communicators_;  ///< a call that makes groups holds on to its parent
  std::map<uint64_t, uint32_t> communicator_by_key_;
  std::vector<int32_t> world_;
  std::unordered_map<uint64_t, Channel> channels_;                 ///< looked up only, never walked
  std::map<uint32_t, std::vector<uint32_t>> any_source_receives_;  ///< by rank
  std::map<uint32_t, std::vector<uint32_t>> unmatched_sends_;      ///< by destination, ready ones
  size_t any_source_turn_ = 0;
  std::set<uint32_t> held_receivers_;  ///< ranks whose receives take a message last
  /// By rank: sends that it might have taken when another rank's receive went first.
  std::map<uint32_t, std::set<std::pair<uint32_t, Time>>> passed_over_;
  std::vector<Transfer> transfers_;
  std::vector<uint32_t> free_transfers_;
  std::vector<uint32_t> transfer_of_flow_;
  std::vector<FlowNetwork::Forecast> forecasts_;
  enum class LinkFaultState : uint8_t { waiting, scheduled, active, over };
  std::vector<LinkFaultState> link_fault_states_;  ///< as SimulationOptions::link_faults
  int64_t active_link_faults_ = 0;
  bool latencies_change_ = false;  ///< some link fault adds to them
  std::set<int32_t> struck_links_;
  std::array<std::deque<KnownState>, period_levels> known_states_;  ///< the newest first
  std::string ranks_differ_;
  Time now_{};
  Time latest_{};
  int64_t operations_ = 0;
  int64_t simulated_operations_ = 0;
};

}  // namespace lockstep::sim
