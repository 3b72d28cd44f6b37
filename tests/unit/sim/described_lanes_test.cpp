// A second host thread of a rank: periods are left out where it says where it stands, and its times
// count them.
#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "sim/plain_cost.hpp"
#include "sim/simulation.hpp"

using namespace lockstep;
using namespace lockstep::literals;

namespace described_lanes_test {

namespace {

constexpr int64_t steps = 100;

/// What a thread tells of itself.
enum class Tells : uint8_t { everything, nothing_at_work, nothing };

/// Answers what the host of its rank asks for in each step, with all other ranks' threads.
class Helper final : public DescribedLane {
 public:
  explicit Helper(Tells tells) : tells_(tells) {}

  void begin(Rank& rank) {
    asked_ = rank.promise();
    Lane& lane = rank.start_lane(run(rank));
    if (tells_ != Tells::nothing) {
      lane.is_described_by(*this);
    }
  }
  Ticket ask(Rank& rank, bool ends) {
    ends_ = ends;
    answered_ = rank.promise();
    const Ticket asked = std::exchange(asked_, rank.promise());
    rank.fulfil(asked);
    return answered_;
  }

  std::optional<LaneMemory> memory() const override {
    if (tells_ == Tells::nothing_at_work && works_) {
      return std::nullopt;
    }
    LaneMemory memory;
    memory.numbers = {works_ ? 1 : 0, ends_ ? 1 : 0};
    memory.tickets = {asked_, answered_};
    return memory;
  }

 private:
  Program run(Rank& rank) {
    while (!ends_) {
      const Ticket asked = asked_;
      co_await rank.settle(asked);
      rank.host(3_us);
      works_ = true;
      co_await rank.settle(rank.all_reduce(world_group, Slice::of_size(1_MiB), Reduction::sum));
      works_ = false;
      rank.fulfil(answered_);
    }
  }

  Tells tells_;
  bool works_ = false;
  bool ends_ = false;
  Ticket asked_;
  Ticket answered_;
};

Program once(Rank& rank) { co_await rank.settle(rank.compute(7_us)); }

// The host computes for a moment before each step but the first, so that this begins while the
// thread is at work.
Program train(Rank& rank, std::shared_ptr<Helper> helper) {
  helper->begin(rank);
  Ticket answered;
  for (int64_t step = 0; step < steps; ++step) {
    if (answered) {
      co_await rank.settle(rank.compute(1_us));
    }
    PeriodStart start;
    start.first = step == 0;
    start.alike = steps - step;
    step += rank.begins_period(start).periods;
    if (answered) {
      co_await rank.settle(answered);
    }
    co_await rank.settle(rank.compute(5_us));
    answered = helper->ask(rank, step + 1 == steps);
  }
  co_await rank.settle(answered);
  rank.start_lane(once(rank));
}

RunResult trained(bool leaves_out, Tells tells) {
  RunOptions options;
  options.world_size = 2;
  sim::ExplicitComputeCost compute;
  sim::FlatNetworkCost network(2, 50_GBps, 500_ns);
  sim::SimulationOptions simulation;
  simulation.compute = &compute;
  simulation.communication = &network;
  simulation.leaves_out_periods = leaves_out;
  std::vector<std::shared_ptr<Helper>> helpers = {std::make_shared<Helper>(tells),
                                                  std::make_shared<Helper>(tells)};
  return sim::simulate(options, simulation, [&helpers](Rank& rank) {
    return train(rank, helpers[static_cast<size_t>(rank.id())]);
  });
}

Time last_finish(const Journal& journal, int32_t lane) {
  Time last{};
  const LaneJournal& rows = journal.lane(1, lane);
  rows.for_each([&](const Row& row) {
    last = row.row == RowKind::op ? rows.completion(row.sequence).finish : last;
  });
  return last;
}

int64_t reductions_with_left_out(const Journal& journal) {
  int64_t count = 0;
  const LaneJournal& rows = journal.lane(1, 1);
  int64_t index = 0;
  std::vector<int64_t> places;
  rows.for_each([&](const Row& row) {
    if (row.row == RowKind::op && row.kind == OpKind::all_reduce) {
      places.push_back(index);
    }
    ++index;
  });
  const auto within = [&](const RepeatedRows& each) {
    return std::ranges::count_if(
        places, [&](int64_t place) { return each.begin <= place && place < each.end; });
  };
  count = std::ssize(places);
  for (const int64_t times : times_repeated(journal.repeated_on(1, 1), within)) {
    count += times;
  }
  return count;
}

/// Counts the periods that it hears of, before and behind the end of its program.
class Follower final : public PeriodFollower {
 public:
  std::optional<LaneMemory> memory() const override { return LaneMemory{}; }
  void period_begins(int32_t, const PeriodsLeftOut& left_out) override {
    (ended ? asked_behind_end : asked) += 1;
    periods_left_out += left_out.periods;
  }

  bool ended = false;
  int64_t asked = 0;
  int64_t asked_behind_end = 0;
  int64_t periods_left_out = 0;
};

/// Sends a message in each step, and waits for the answer.
Program ask(Rank& rank) {
  for (int64_t step = 0; step < steps; ++step) {
    PeriodStart start;
    start.first = step == 0;
    start.alike = steps - step;
    step += rank.begins_period(start).periods;
    co_await rank.settle(rank.compute(5_us));
    rank.send(world_group, Slice::of_size(1_KiB), 1);
    co_await rank.settle(rank.receive(world_group, Slice::of_size(1_KiB), 1));
  }
}

/// Answers `answers` messages, and raises then unless there are no more.
Program answer(Rank& rank, Follower& follower, int64_t answers) {
  rank.follow_periods(&follower);
  int64_t given = 0;
  while (given + follower.periods_left_out < answers) {
    co_await rank.settle(rank.receive(world_group, Slice::of_size(1_KiB), 0));
    rank.send(world_group, Slice::of_size(1_KiB), 0);
    ++given;
  }
  follower.ended = true;
  if (answers < steps) {
    throw ProgramException(no_site, "no more answers");
  }
  rank.follow_periods(nullptr);
}

RunResult answered(bool leaves_out, int64_t answers, Follower& follower) {
  RunOptions options;
  options.world_size = 2;
  sim::ExplicitComputeCost compute;
  sim::FlatNetworkCost network(2, 50_GBps, 500_ns);
  sim::SimulationOptions simulation;
  simulation.compute = &compute;
  simulation.communication = &network;
  simulation.leaves_out_periods = leaves_out;
  return sim::simulate(options, simulation, [&](Rank& rank) {
    return rank.id() == 0 ? ask(rank) : answer(rank, follower, answers);
  });
}

}  // namespace

TEST_CASE("a rank without loops leaves out what those that it answers leave out") {
  Follower of_whole;
  Follower follower;
  const RunResult whole = answered(false, steps, of_whole);
  const RunResult run = answered(true, steps, follower);
  REQUIRE_FALSE(whole.hung);
  REQUIRE_FALSE(run.hung);
  CHECK(of_whole.asked == 0);
  // In a step a compute, and two messages that both ranks have a part in.
  CHECK(whole.operations == 5 * steps);
  CHECK(run.operations == 5 * (steps - follower.periods_left_out));
  CHECK(follower.periods_left_out > steps / 2);
  CHECK(run.total_time == whole.total_time);
  CHECK(last_finish(*run.journal, 0) == last_finish(*whole.journal, 0));
}

TEST_CASE("a program that has raised hears of no period any more") {
  Follower follower;
  const RunResult run = answered(true, 3, follower);
  CHECK(run.hung);
  CHECK(follower.asked > 0);
  CHECK(follower.asked_behind_end == 0);
}

TEST_CASE("periods are left out beside a thread that says where it stands") {
  const RunResult whole = trained(false, Tells::everything);
  const RunResult run = trained(true, Tells::everything);
  REQUIRE_FALSE(whole.hung);
  REQUIRE_FALSE(run.hung);
  // On each of two ranks two computes, a host delay and an all_reduce in a step. The first step has
  // one compute, and another one comes at the end.
  CHECK(whole.operations == 2 * 4 * steps);
  CHECK(run.operations < whole.operations / 4);
  CHECK(run.total_time == whole.total_time);
  for (const int32_t lane : {0, 1, 2}) {  // the last begins behind all that was left out
    CAPTURE(lane);
    CHECK(last_finish(*run.journal, lane) == last_finish(*whole.journal, lane));
  }
  CHECK(reductions_with_left_out(*run.journal) == steps);
  CHECK(run.journal->repeated_on(1, 2).empty());
}

TEST_CASE("nothing is left out beside a thread that does not say where it stands") {
  const int64_t all = trained(false, Tells::nothing).operations;
  CHECK(trained(true, Tells::nothing).operations == all);
  CHECK(trained(true, Tells::nothing_at_work).operations == all);
}

}  // namespace described_lanes_test
