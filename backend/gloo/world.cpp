#include "backend/gloo/world.hpp"

#include <algorithm>
#include <thread>

#include "backend/gloo/pipe_signal.hpp"
#include "backend/gloo/rank_host.hpp"

namespace lockstep::backend {

namespace {

class LockedBoard final : public FingerprintBoard {
 public:
  using FingerprintBoard::FingerprintBoard;
  std::optional<Mismatch> post(RankId rank, GroupId group, int64_t call,
                               const Fingerprint& fingerprint) override {
    const std::lock_guard lock(mutex_);
    return FingerprintBoard::post(rank, group, call, fingerprint);
  }

 private:
  std::mutex mutex_;
};

/// One run: made, run once, taken apart. Holds all ranks of the world, or those of this process.
class World {
 public:
  World(const RunOptions& options, const GlooOptions& gloo, uint64_t run,
        JournalFollower* follower = nullptr);
  void add(int32_t rank, std::shared_ptr<gloo::Context> context);
  /// Runs the programs until they have ended, or hang.
  void run(const ProgramOfRank& program_of_rank, Elsewhere* elsewhere = nullptr);
  /// Ends what is left. True when no message of this run is left in the connections.
  bool finish_all();
  void finish_alone();
  /// Of the only rank.
  bool was_lost() const { return hosts_.front()->end().kind == RankEnd::Kind::lost; }
  Leftovers leftovers();
  /// True when the connections may serve another run.
  bool finish(const Agreement& agreement);
  RunResult result();

 private:
  void start(const ProgramOfRank& program_of_rank);
  void watch(Elsewhere* elsewhere);
  void abort(Outcome outcome, std::vector<WaitingLane>* waiting);
  void write_completions();
  bool is_usable() const;
  void take_back_eager_sends(RankState& state);
  static RankEnd end_of(const RankHost& host, const RankState& state);

  RunShared shared_;
  LockedBoard board_;
  std::unique_ptr<Journal> journal_;
  std::vector<std::unique_ptr<RankState>> states_;
  std::vector<std::unique_ptr<RankHost>> hosts_;
  std::vector<std::thread> threads_;
  RunResult result_;
  bool aborted_ = false;
};

World::World(const RunOptions& options, const GlooOptions& gloo, uint64_t run,
             JournalFollower* follower)
    : shared_{options, gloo, run, follower}, board_(options.world_size) {
  if (options.record) {
    JournalOptions in_memory = options.journal;
    in_memory.follower = follower;
    in_memory.store = nullptr;  // its bound counts all ranks together, and they append at once
    journal_ = std::make_unique<Journal>(options.world_size, in_memory);
  }
  result_.ends.resize(static_cast<size_t>(options.world_size));
  result_.memory.resize(static_cast<size_t>(options.world_size));
}

void World::add(int32_t rank, std::shared_ptr<gloo::Context> context) {
  states_.push_back(std::make_unique<RankState>(rank, shared_, std::move(context)));
  hosts_.push_back(std::make_unique<RankHost>(*states_.back(), journal_.get(), &board_));
}

void World::run(const ProgramOfRank& program_of_rank, Elsewhere* elsewhere) {
  start(program_of_rank);
  watch(elsewhere);
  for (std::thread& thread : threads_) {
    thread.join();
  }
  result_.total_time = shared_.progress.now();
  result_.times_measured = true;
  result_.clock_at_start_ns = shared_.progress.clock_at_start_ns();
  if (!aborted_ && !shared_.progress.wait_for_zero(shared_.progress.operations,
                                                   std::min(drain_limit, shared_.gloo.deadline))) {
    abort(Outcome::aborted, nullptr);
  }
}

// Who settles the ticket of a kernel that broke ends by what the kernel said.
RankEnd World::end_of(const RankHost& host, const RankState& state) {
  const RankEnd& end = host.end();
  const bool ended = end.kind == RankEnd::Kind::finished || end.kind == RankEnd::Kind::failed;
  return ended && state.broken ? *state.broken : end;
}

RunResult World::result() {
  for (size_t index = 0; index < states_.size(); ++index) {
    RankHost& host = *hosts_[index];
    RankState& state = *states_[index];
    host.stop_workers();
    const auto rank = static_cast<size_t>(state.rank);
    result_.ends[rank] = end_of(host, state);
    result_.operations += host.operations();
    host.stack().tell_struck(result_);
    result_.memory[rank] = state.buffers.memory();
    state.eager_sends.clear();
  }
  write_completions();
  hosts_.clear();
  states_.clear();
  result_.journal = std::move(journal_);
  return std::move(result_);
}

void World::start(const ProgramOfRank& program_of_rank) {
  const PipeSignalBlocked inherited;
  Progress& progress = shared_.progress;
  for (const auto& host : hosts_) {
    progress.begin(progress.hosts);
    threads_.emplace_back([&progress, &program_of_rank, host = host.get()] {
      host->run(program_of_rank);
      progress.end(progress.hosts);
    });
  }
}

void World::watch(Elsewhere* elsewhere) {
  if (!shared_.progress.wait_for_zero(shared_.progress.hosts, shared_.gloo.deadline, elsewhere)) {
    result_.hung = true;
    abort(Outcome::timed_out, &result_.waiting);
  }
}

void World::abort(Outcome outcome, std::vector<WaitingLane>* waiting) {
  aborted_ = true;
  for (const auto& state : states_) {
    std::vector<WaitingLane> of_rank = state->abort(outcome);
    if (waiting != nullptr) {
      std::ranges::move(of_rank, std::back_inserter(*waiting));
    }
  }
}

bool World::finish_all() {
  if (!is_usable() || shared_.eager_sent != shared_.eager_received) {
    finish_alone();
    return false;
  }
  for (const auto& state : states_) {
    if (state->matcher.listens()) {
      const auto neighbour = static_cast<size_t>(state->rank + 1) % states_.size();
      states_[neighbour]->matcher.dismiss(state->rank);
    }
    take_back_eager_sends(*state);
  }
  return true;
}

bool World::is_usable() const {
  return !aborted_ && std::ranges::all_of(states_, [](const auto& state) {
    return !state->any_failed() && state->matcher.is_clean();
  });
}

void World::take_back_eager_sends(RankState& state) {
  for (const auto& message : state.eager_sends) {
    const Working working(shared_.progress);
    state.mailbox.wait(*message);  // received, so at most a moment
  }
}

Leftovers World::leftovers() {
  return {is_usable(), states_.front()->matcher.listens(), shared_.eager_sent,
          shared_.eager_received};
}

bool World::finish(const Agreement& agreement) {
  RankState& own = *states_.front();
  bool kept = agreement.keep && is_usable();
  try {
    if (kept && agreement.dismisses_before) {
      const int32_t ranks = shared_.options.world_size;
      own.matcher.dismiss((own.rank + ranks - 1) % ranks);
    }
    if (kept) {
      take_back_eager_sends(own);
    }
  } catch (const ConnectionBroke&) {
    kept = false;
  }
  if (!kept) {
    finish_alone();
  }
  return kept;
}

void World::finish_alone() {
  if (!aborted_) {
    abort(Outcome::aborted, nullptr);
  }
}

void World::write_completions() {
  if (journal_ == nullptr) {
    return;
  }
  for (const auto& state : states_) {
    if (journal_->options().completions) {
      state->tickets.write_to(*journal_, state->rank);
    }
    auto& groups = journal_->groups[static_cast<size_t>(state->rank)];
    for (const auto& [group, made] : state->groups) {
      if (group == world_group) {
        continue;
      }
      groups.resize(std::max(groups.size(), size_t{group.value} + 1));
      groups[group.value] = {made.key, made.members};
    }
  }
}

}  // namespace

RunResult run(const RunOptions& options, const GlooOptions& gloo,
              const ProgramOfRank& program_of_rank) {
  Fleet own;
  Fleet& fleet = gloo.fleet != nullptr ? *gloo.fleet : own;
  World world(options, gloo, fleet.next_run());
  const Fleet::Contexts& contexts = fleet.connected(options.world_size);
  for (int32_t rank = 0; rank < options.world_size; ++rank) {
    world.add(rank, contexts[static_cast<size_t>(rank)]);
  }
  world.run(program_of_rank);
  const bool clean = world.finish_all();
  RunResult result = world.result();
  if (!clean) {
    fleet.discard(options.world_size);
  }
  return result;
}

RunResult run_rank(const RunOptions& options, const GlooOptions& gloo, const Seat& seat,
                   const ProgramOfRank& program_of_rank, bool* kept) {
  World world(options, gloo, seat.run, seat.follower);
  world.add(seat.rank, seat.context);
  world.run(program_of_rank, seat.elsewhere);
  if (seat.when_lost && world.was_lost()) {
    seat.when_lost();
  }
  const bool serves_again = world.finish(seat.wait_for_all(world.leftovers()));
  if (kept != nullptr) {
    *kept = serves_again;
  }
  return world.result();
}

}  // namespace lockstep::backend
