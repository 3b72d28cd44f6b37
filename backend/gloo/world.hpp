#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "backend/gloo/fleet.hpp"
#include "backend/rank/progress.hpp"
#include "model/network/execute.hpp"
#include "model/program/run.hpp"

namespace lockstep::backend {

struct GlooOptions {
  /// How long nothing may happen anywhere while a lane waits before the run counts as hung. A rank
  /// that computes is not waiting, however long it takes.
  std::chrono::milliseconds deadline{30'000};
  /// Sleep for the duration of `timed` kernels and host work instead of taking no time.
  bool sleep_timed_kernels = false;
  /// Connections to use and to leave for the next run; null: made and closed by this run.
  Fleet* fleet = nullptr;
  /// Makes what executes the kernels of one rank; empty: the reference arithmetic.
  std::function<std::unique_ptr<KernelExecutor>()> kernels{};
};

/// Runs the program in this process for real: one thread per rank, a thread per stream, messages by
/// Gloo over TCP on 127.0.0.1, kernels by the reference arithmetic (execute.hpp) unless given
/// otherwise. Returns when every lane has ended or the deadline has passed; then no thread is left.
///
/// Reductions move the contributions to the members that need them and add them in group order by
/// `collective_result`: floating-point results are bit-equal to those of every world that uses it.
///
/// Matching. The k-th collective that a rank submits to a communicator meets the k-th of each other
/// member. They complete together, and only when all members came with the same kind, byte count,
/// root and part sizes; otherwise never. A different reduction or type of equal size completes,
/// each member with its own. Neither does a call of a rank that is no member, or with a root that
/// is none. A receive takes the next send of its communicator, source and tag in issue order; when
/// their sizes differ, both never complete. A receive from `any_rank` takes the first send of its
/// communicator, tag and size that comes while it runs and that no receive with a source waits for.
/// A send settles when its receive has taken it, or at once up to RunOptions::eager_limit. Streams
/// are ordered by `after` alone, also where they share a communicator: only sends to one rank with
/// one tag keep their order over streams.
///
/// Operations that never complete end as timed_out after the deadline; the rows of the journal end
/// there. So does an operation whose connection broke: its peer is gone. A kernel that throws, and
/// what comes after it, ends as failed; a rank that settles it, or ends, ends by what the kernel
/// said. Operations that are still in flight when every lane has ended get a grace of `drain_limit`
/// without progress and end as aborted. Journals stay in memory: JournalOptions::store is not used.
/// Times are those of a steady clock since the start of the run.
///
/// A receive without source although RunOptions::any_source is off throws ProgramException on that
/// rank. Throws WorldUnavailable when the ranks cannot be connected.
RunResult run(const RunOptions& options, const GlooOptions& gloo,
              const ProgramOfRank& program_of_rank);

/// State that a run leaves in the connections of one rank.
struct Leftovers {
  bool usable = false;   ///< it ended by itself, nothing failed, and no message waits for a receive
  bool listens = false;  ///< for messages, until its neighbour dismisses it
  int64_t eager_sent = 0;
  int64_t eager_received = 0;
};

/// Agreement of all ranks about their connections.
struct Agreement {
  bool keep = false;              ///< they serve another run
  bool dismisses_before = false;  ///< the rank before this one listens
};

/// One rank of a world whose other ranks are other processes.
struct Seat {
  int32_t rank = 0;
  std::shared_ptr<gloo::Context> context;  ///< connected to all others; null in a world of one
  /// Returns when every rank has done its part, or after a deadline of its own: only then may the
  /// connections close, because others may still be taking what this rank has sent.
  std::function<Agreement(const Leftovers&)> wait_for_all;
  uint64_t run = 1;  ///< a number that no earlier run over these connections had
  JournalFollower* follower = nullptr;
  /// Called, once the rank's streams have done what was put into them, where a fault takes the rank
  /// away: it may end the process. Empty: the rank falls silent and stays.
  std::function<void()> when_lost{};
  /// While another rank gets on, nothing hangs; null: nobody knows. Outlives the run.
  Elsewhere* elsewhere = nullptr;
};

/// Runs only one rank, in this process. Of the result's lists by rank only this rank's
/// entries are filled, and its journal holds this rank's lanes. What hangs is ended when nothing
/// has happened on this rank for the deadline while it waits, nor on another as Seat::elsewhere
/// tells. `kept`, where not null: whether the connections may serve another run.
RunResult run_rank(const RunOptions& options, const GlooOptions& gloo, const Seat& seat,
                   const ProgramOfRank& program_of_rank, bool* kept = nullptr);

inline constexpr std::chrono::milliseconds drain_limit{500};

}  // namespace lockstep::backend
