#pragma once

#include <chrono>

#include "backend/gloo/fleet.hpp"
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
};

/// Runs the program in this process for real: a thread a rank, a thread a stream, messages by Gloo
/// over TCP on 127.0.0.1, kernels by the reference arithmetic (execute.hpp). Returns when every
/// lane has ended or the deadline has passed; then no thread is left.
///
/// Reductions move the contributions to the members that need them and add them in group order by
/// `collective_result`: floating-point results are bit-equal to those of every world that uses it.
///
/// Matching. The k-th collective that a rank submits to a communicator meets the k-th of each other
/// member. They complete together, and only when all members came with the same kind, byte count,
/// root and part sizes; otherwise never. A different reduction or type of equal size completes,
/// each member with its own. A receive takes the next send of its communicator, source and tag in
/// issue order (`any_rank`: of whichever other member comes first; never of the rank itself); when
/// their sizes differ, both never complete. A send settles when its receive has taken it, or at
/// once up to RunOptions::eager_limit. Communication of one communicator on several streams of a
/// rank runs in order of submission.
///
/// What never completes ends as timed_out after the deadline; the rows of the journal end there.
/// Operations that are still in flight when every lane has ended get a grace of at most
/// `drain_limit` without progress and end as aborted. Journals stay in memory:
/// JournalOptions::store is not used. Times are those of a steady clock since the start of the run.
///
/// A receive without source although RunOptions::any_source is off, and communication over a group
/// that the rank is no member of, throw ProgramException on that rank. Throws WorldUnavailable when
/// the ranks cannot be connected.
RunResult run(const RunOptions& options, const GlooOptions& gloo,
              const ProgramOfRank& program_of_rank);

inline constexpr std::chrono::milliseconds drain_limit{500};

}  // namespace lockstep::backend
