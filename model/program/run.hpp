#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/core/ranks_of_nodes.hpp"
#include "model/core/update_sensitivity.hpp"
#include "model/core/value_budget.hpp"
#include "model/program/buffer_table.hpp"
#include "model/program/by_rank.hpp"
#include "model/program/decorators.hpp"
#include "model/program/fault_port.hpp"
#include "model/program/journal.hpp"
#include "model/program/rank.hpp"

namespace lockstep {

struct Network;

/// Makes the program of one rank. Called once per rank; in a world of threads on that rank's
/// thread, so it must touch only what belongs to that rank.
using ProgramOfRank = std::function<Program(Rank&)>;

/// Inputs that every kind of world takes.
struct RunOptions {
  int32_t world_size = 1;
  int32_t ranks_per_node = 0;     ///< the most that a node has; 0: all on one node
  RanksOfNodes ranks_of_nodes{};  ///< where nodes differ; empty: ranks_per_node on each
  int32_t devices_per_rank = 1;   ///< DP, DDP2: several
  /// Ranks that do the same, of which a simulation runs one each; null: it runs all.
  std::shared_ptr<const RankClasses> classes{};
  uint64_t seed = 0;
  int32_t attempt = 0;    ///< how often an elastic launcher has started the ranks before
  bool numerics = false;  ///< parameters, gradients and activations carry values
  Bytes device_memory = Bytes::max();
  std::shared_ptr<ValueBudget> value_budget{};  ///< of all ranks of this process; null: no limit
  AverageOrder average_order = AverageOrder::scale_then_sum;
  bool any_source = false;           ///< whether a receive may name no source (NCCL: no, Gloo: yes)
  Bytes eager_limit{};               ///< a send of at most this size returns before it is received
  int32_t launch_queue = 1024;       ///< operations in flight before submission holds the host back
  const Network* network = nullptr;  ///< of layer kernels; outlives the run

  bool record = true;
  JournalOptions journal{};
  bool check = false;                                   ///< CheckingPort on every rank
  std::map<int32_t, std::vector<PlannedFault>> faults;  ///< by rank
  const Journal* replay = nullptr;                      ///< choices to repeat; outlives the run
};

/// How a rank's program ended.
struct RankEnd {
  enum class Kind : uint8_t {
    finished,
    raised,  ///< an exception of its own
    stuck,   ///< still waiting when nothing could advance, or when the deadline had passed
    lost,    ///< a fault took it away
    failed,  ///< a ticket it settled failed
  };
  Kind kind = Kind::finished;
  SiteId site{};
  std::string message;
  bool out_of_memory = false;
};

/// A lane that waits forever.
struct WaitingLane {
  int32_t rank = 0;
  LaneId lane{};
  Until until = Until::all;
  std::vector<Ticket> tickets;
};

/// Sensitivities of one rank's parameters, by buffer and first element of their slice.
using UpdateSensitivities = std::map<std::pair<uint32_t, int64_t>, UpdateSensitivity>;

struct RunResult {
  bool hung = false;                 ///< some lane waits forever
  Time total_time{};                 ///< simulated, or measured by a real world
  bool times_measured = false;       ///< by the clock of this machine: a second run has others
  int64_t clock_at_start_ns = 0;     ///< measured: what the host's steady clock said at time 0
  ByRank<RankEnd> ends;              ///< of lane 0
  std::vector<WaitingLane> waiting;  ///< by rank and lane; only when hung
  std::unique_ptr<Journal> journal;  ///< null when not recorded
  ByRank<std::map<DeviceId, DeviceMemory>> memory;
  /// By rank: the most that tensors of the framework held at once, buffers, graphs and what kernels
  /// use; absent: nobody counted. Empty: nobody did on any rank.
  ByRank<std::optional<Bytes>> tensor_peak;
  ByRank<UpdateSensitivities> sensitivities;  ///< empty where nobody noted them
  int64_t operations = 0;                     ///< submitted, over all ranks
  int64_t simulated_operations = 0;           ///< those of ranks that others stand for left out
  /// Why the classes of RunOptions do not hold, so that nothing here is an answer; empty: they do.
  std::string ranks_differ;
  /// Faults that took effect: PlannedFault::number (or the world's own fault's) and rank; -1: none.
  std::set<std::pair<int32_t, int32_t>> struck_faults;
  /// No send of this run ended before it was received: had it needed buffers, it would have hung.
  /// False also where the world does not say.
  bool sends_waited = false;
};

/// One rank's view of its world: the decorators that the options ask for around the world's port,
/// and the typed face over them.
class RankStack {
 public:
  /// `host`: of this rank; null where the world has no time of its own.
  RankStack(Port& world, const RunOptions& options, Journal* journal, FingerprintBoard* board,
            const HostTime* host = nullptr);
  /// Adds the faults that took effect on this rank.
  void tell_struck(RunResult& result) const;
  Rank& rank() { return *rank_; }
  Port& port() { return *outermost_; }

 private:
  std::vector<std::unique_ptr<Port>> decorators_;
  Port* outermost_;
  const FaultPort* faults_ = nullptr;  ///< among the decorators; null: none
  std::unique_ptr<Rank> rank_;
};

/// Where a rank of these options stands.
Place place_of(const RunOptions& options, int32_t rank);

/// Says how a lane ended from the exception that ended it (null: it finished).
RankEnd end_of(std::exception_ptr failure);

}  // namespace lockstep
