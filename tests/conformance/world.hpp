#pragma once

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "backend/gloo/world.hpp"
#include "sim/plain_cost.hpp"
#include "sim/simulation.hpp"
#ifdef LOCKSTEP_ON_FAKE_DEVICES
#include "tests/device/fake_device.hpp"
#endif

namespace lockstep::test {

/// What one rank's program saw, in its order; only that rank's thread adds to it.
using Seen = std::vector<Values>;
/// Makes the program of one rank: the same in every world.
using Body = std::function<Program(Rank&, Seen&)>;

/// One run in one world.
struct Arm {
  RunResult result;
  std::vector<Seen> seen;  ///< by rank
};
struct Arms {
  Arm simulated;
  Arm real;
};

inline RunOptions world_of(int32_t ranks) {
  RunOptions options;
  options.world_size = ranks;
  options.numerics = true;
  options.any_source = true;
  options.journal.lists = true;
  return options;
}

inline Arm run_simulated(const RunOptions& options, const Body& body,
                         std::optional<uint64_t> tie_seed = {}) {
  const sim::ExplicitComputeCost compute;
  sim::FlatNetworkCost network(options.world_size, BytesPerSecond(50'000'000'000), Time(500'000));
  sim::SimulationOptions simulation;
  simulation.compute = &compute;
  simulation.communication = &network;
  simulation.tie_seed = tie_seed;
  Arm arm;
  arm.seen.resize(static_cast<size_t>(options.world_size));
  arm.result = sim::simulate(options, simulation, [&](Rank& rank) {
    return body(rank, arm.seen[static_cast<size_t>(rank.id())]);
  });
  return arm;
}

/// Runs bodies for real and in the simulator. One run at a time.
class Worlds {
 public:
  /// `deadline`: how long nothing may happen before the real run counts as hung.
  explicit Worlds(std::chrono::milliseconds deadline = std::chrono::milliseconds(400)) {
    gloo_.deadline = deadline;
    gloo_.fleet = &fleet_;
  }

  Arm run_real(const RunOptions& options, const Body& body) {
    return run_real(options, body, gloo_.deadline);
  }
  Arm run_real(const RunOptions& options, const Body& body, std::chrono::milliseconds deadline) {
    backend::GlooOptions gloo = gloo_;
    gloo.deadline = deadline;
    Arm arm;
    arm.seen.resize(static_cast<size_t>(options.world_size));
    const ProgramOfRank program = [&](Rank& rank) {
      return body(rank, arm.seen[static_cast<size_t>(rank.id())]);
    };
#ifdef LOCKSTEP_ON_FAKE_DEVICES
    arm.result = run_on_fake_devices(options, deadline, program);
#else
    arm.result = backend::run(options, gloo, program);
#endif
    return arm;
  }

  /// The simulator is given the choices that the real world made.
  Arms run(const RunOptions& options, const Body& body) {
    Arms arms;
    arms.real = run_real(options, body);
    RunOptions replaying = options;
    replaying.replay = arms.real.result.journal.get();
    arms.simulated = run_simulated(replaying, body);
    return arms;
  }

 private:
  backend::Fleet fleet_;
  backend::GlooOptions gloo_;
};

inline bool same_memory(const DeviceMemory& a, const DeviceMemory& b) {
  return a.capacity == b.capacity && a.held == b.held && a.peak == b.peak &&
         a.held_by_purpose == b.held_by_purpose && a.peak_by_purpose == b.peak_by_purpose;
}

/// The operations of one rank that ended well in one of two runs and not in the other. Both
/// journals have the same rows.
inline std::vector<std::string> unequal_outcomes(const Journal& a, const Journal& b, int32_t rank) {
  std::vector<std::string> found;
  for (int32_t lane = 0; lane < a.lanes(rank); ++lane) {
    a.lane(rank, lane).for_each([&](const Row& row) {
      const Outcome one = a.lane(rank, lane).completion(row.sequence).outcome;
      const Outcome other = b.lane(rank, lane).completion(row.sequence).outcome;
      if (row.row == RowKind::op && (one == Outcome::ok) != (other == Outcome::ok)) {
        found.push_back(fmt::format("rank {} lane {}: {} is {} and {}", rank, lane, text_of(row),
                                    name_of(one), name_of(other)));
      }
    });
  }
  return found;
}

/// Where two arms differ in anything but time, a sentence each: rows given the same choices, how
/// ranks ended, who waits for what, memory to the byte, and every value bit for bit.
inline std::vector<std::string> disagreements(const Arm& a, const Arm& b) {
  std::vector<std::string> found;
  for (const JournalDifference& difference : differences(*a.result.journal, *b.result.journal, 3)) {
    found.push_back(fmt::format("rank {} lane {} row {}: {}", difference.rank, difference.lane,
                                difference.row, difference.text));
  }
  for (int32_t rank = 0; found.empty() && rank < a.result.journal->ranks(); ++rank) {
    found = unequal_outcomes(*a.result.journal, *b.result.journal, rank);
  }
  if (a.result.hung != b.result.hung) {
    found.push_back(fmt::format("hung: {} and {}", a.result.hung, b.result.hung));
  }
  if (a.result.operations != b.result.operations) {
    found.push_back(fmt::format("operations: {} and {}", a.result.operations, b.result.operations));
  }
  const auto same_wait = [](const WaitingLane& x, const WaitingLane& y) {
    return x.rank == y.rank && x.lane == y.lane && x.until == y.until && x.tickets == y.tickets;
  };
  if (!std::equal(a.result.waiting.begin(), a.result.waiting.end(), b.result.waiting.begin(),
                  b.result.waiting.end(), same_wait)) {
    found.push_back("other lanes wait forever, or for other tickets");
  }
  for (size_t rank = 0; rank < a.seen.size(); ++rank) {
    const RankEnd& x = a.result.ends[rank];
    const RankEnd& y = b.result.ends[rank];
    if (x.kind != y.kind || x.site != y.site || x.out_of_memory != y.out_of_memory) {
      found.push_back(fmt::format("rank {} ends: {} '{}' and {} '{}'", rank,
                                  static_cast<int>(x.kind), x.message, static_cast<int>(y.kind),
                                  y.message));
    }
    const auto& held = a.result.memory[rank];
    const auto& other = b.result.memory[rank];
    if (!std::equal(held.begin(), held.end(), other.begin(), other.end(),
                    [](const auto& m, const auto& n) {
                      return m.first == n.first && same_memory(m.second, n.second);
                    })) {
      found.push_back(fmt::format("rank {}: memory differs", rank));
    }
    if (a.seen[rank] != b.seen[rank]) {
      found.push_back(fmt::format("rank {}: values differ", rank));
    }
  }
  return found;
}
inline std::vector<std::string> disagreements(const Arms& arms) {
  return disagreements(arms.simulated, arms.real);
}

// Small words for programs.

inline Slice metric(Rank& rank, DType dtype, std::initializer_list<double> numbers) {
  const Slice slice = rank.allocate(Purpose::metric, dtype, static_cast<int64_t>(numbers.size()));
  rank.write(slice, Values::of(dtype, numbers));
  return slice;
}

/// A kernel of at most one read, one write and one scalar.
inline Ticket apply(Rank& rank, Kernel kernel, const Slice& read, const Slice& write,
                    double scalar = 0, const ComputeOptions& options = {}) {
  KernelCall call;
  call.kernel = kernel;
  if (read.buffer != no_buffer) {
    call.reads = {&read, 1};
  }
  call.writes = {&write, 1};
  call.scalars = {&scalar, 1};
  return rank.compute(call, options);
}

inline std::vector<double> numbers_of(const Seen& seen) {
  std::vector<double> numbers;
  for (const Values& values : seen) {
    for (int64_t i = 0; i < values.size(); ++i) {
      numbers.push_back(values.number(i));
    }
  }
  return numbers;
}

inline std::vector<RankEnd::Kind> ends_of(const Arm& arm) {
  std::vector<RankEnd::Kind> kinds;
  for (const RankEnd& end : arm.result.ends) {
    kinds.push_back(end.kind);
  }
  return kinds;
}

}  // namespace lockstep::test
