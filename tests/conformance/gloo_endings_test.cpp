// How runs of the in-process real world end: hangs, failures, lanes, and what they leave behind.
#include <catch2/catch.hpp>

#include "tests/conformance/gloo_world.hpp"

namespace lockstep::backend::gloo_endings_test {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds plenty{5000};
constexpr milliseconds short_deadline{200};

Program missing_call(Rank& rank) {
  const Slice data = metric(rank, DType::fp32, {1});
  const Ticket first = rank.all_reduce(world_group, data, Reduction::sum);
  co_await rank.settle(first);
  if (rank.id() == 0) {
    const Ticket second = rank.all_reduce(world_group, data, Reduction::sum);
    co_await rank.settle(second);
    rank.read(data);  // never reached: no row
  }
}

Program wrong_order(Rank& rank) {
  const Slice data = metric(rank, DType::fp32, {1});
  const Ticket first = rank.id() == 0 ? rank.barrier(world_group)
                                      : rank.all_reduce(world_group, data, Reduction::sum);
  co_await rank.settle(first);
}

Ticket other_root(Rank& rank, Slice data, bool odd) {
  return rank.broadcast(world_group, data, odd ? 1 : 0);
}
Ticket other_size(Rank& rank, Slice data, bool odd) {
  return rank.all_reduce(world_group, data.part(0, odd ? 1 : 2), Reduction::sum);
}
Ticket other_parts(Rank& rank, Slice data, bool odd) {
  const int64_t splits[] = {2, 0, 2, 0};
  const int64_t odd_splits[] = {1, 1, 1, 1};
  return rank.all_to_all(world_group, data, data,
                         odd ? std::span<const int64_t>(odd_splits) : splits);
}
Ticket no_such_root(Rank& rank, Slice data, bool) { return rank.broadcast(world_group, data, 9); }

Program mismatched(Rank& rank, Ticket (*call)(Rank&, Slice, bool)) {
  const Slice data = metric(rank, DType::fp32, {1, 2});
  const Ticket done = call(rank, data, rank.id() == 1);
  co_await rank.settle(done);
}

// Destroyed while the lane is unwound by an abort.
struct Released {
  Rank& rank;
  Slice slice;
  ~Released() { rank.release(slice); }
};

Program raises_on_one_rank(Rank& rank) {
  const Released held{rank, metric(rank, DType::fp32, {1})};
  if (rank.id() == 1) {
    throw ProgramException(site_id("here"), "the user's own mistake");
  }
  const Ticket done = rank.all_reduce(world_group, held.slice, Reduction::sum);
  co_await rank.settle(done);
}

Program swallows_the_abort(Rank& rank, Notes& notes) {
  bool failed = false;
  try {
    const Ticket done = rank.receive(world_group, Slice::of_size(Bytes(4)), 1 - rank.id());
    co_await rank.settle(done);
  } catch (const RankFailure& failure) {
    failed = failure.outcome() == Outcome::timed_out;
  }
  notes[static_cast<size_t>(rank.id())].push_back(failed ? 1 : 0);
  const Ticket more = rank.barrier(world_group);
  co_await rank.settle(more);
}

Program helper(Rank& rank, Ticket asked, Ticket answered, Slice data) {
  co_await rank.settle(asked);
  rank.write(data, Values::of(DType::fp32, {42}));
  rank.fulfil(answered);
}

Program two_lanes(Rank& rank, Notes& notes) {
  const Slice data = metric(rank, DType::fp32, {0});
  const Ticket asked = rank.promise();
  const Ticket answered = rank.promise();
  rank.start_lane(helper(rank, asked, answered, data));
  rank.fulfil(asked);
  CommunicationOptions after_answer;
  after_answer.after = {answered};
  const Ticket sum = rank.all_reduce(world_group, data, Reduction::sum, after_answer);
  co_await rank.settle(sum);
  note(notes, rank, rank.read(data));
  notes[static_cast<size_t>(rank.id())].push_back(sum.sequence);
}

Program lane_that_never_hears(Rank& rank, Ticket never) { co_await rank.settle(never); }

Program leaves_a_lane_waiting(Rank& rank) {
  const Ticket never = rank.promise();
  rank.start_lane(lane_that_never_hears(rank, never));
  co_return;
}

Program first_of_two(Rank& rank, Notes& notes) {
  const Ticket never = rank.promise();
  const Ticket barrier = rank.barrier(world_group);
  const std::vector<Ticket> tickets{never, barrier};
  const uint32_t chosen = co_await rank.settle_any(tickets);
  notes[static_cast<size_t>(rank.id())].push_back(chosen);
  rank.fulfil(never);
}

Program fills_the_launch_queue(Rank& rank) {
  const Slice data = Slice::of_size(Bytes(4));
  for (int32_t i = 0; i < 10; ++i) {
    rank.all_reduce(world_group, data, Reduction::sum);
  }
  const Ticket last = rank.barrier(world_group);
  co_await rank.settle(last);
}

Program held_back_for_ever(Rank& rank) {
  for (int32_t i = 0; i < 3; ++i) {
    rank.receive(world_group, Slice::of_size(Bytes(4)), 1 - rank.id());
  }
  co_return;
}

Program ordinary(Rank& rank) {
  const Slice data = metric(rank, DType::fp32, {1, 2, 3});
  for (int32_t turn = 0; turn < 3; ++turn) {
    const Ticket sum = rank.all_reduce(world_group, data, Reduction::avg);
    const int32_t right = (rank.id() + 1) % rank.world_size();
    const int32_t left = (rank.id() + rank.world_size() - 1) % rank.world_size();
    GroupedCall call(rank);
    call.send(world_group, data, right).receive(world_group, data, left);
    const Ticket exchanged = call.submit();
    const Ticket tickets[] = {sum, exchanged};
    co_await rank.settle_all(tickets);
  }
}

const LaneJournal& lane_zero(const RunResult& result, int32_t rank) {
  return std::as_const(*result.journal).lane(rank, 0);
}

}  // namespace

TEST_CASE("a call that one rank leaves out hangs the others until the deadline") {
  const RunResult result = run(world_of(3), ends_after(short_deadline), missing_call);
  CHECK(result.hung);
  REQUIRE(result.waiting.size() == 1);
  CHECK(result.waiting[0].rank == 0);
  CHECK(result.waiting[0].tickets == std::vector<Ticket>{{2, LaneId{0}}});
  CHECK(result.ends[0].kind == RankEnd::Kind::stuck);
  CHECK(result.ends[1].kind == RankEnd::Kind::finished);
  const LaneJournal& rows = lane_zero(result, 0);
  CHECK(rows.completion(1).outcome == Outcome::ok);
  CHECK(rows.completion(2).outcome == Outcome::timed_out);
  CHECK(rows.completion(2).issue > Time(0));
  CHECK(rows.row(rows.size() - 1).row == RowKind::settle);
  CHECK(lane_zero(result, 1).row(lane_zero(result, 1).size() - 1).row == RowKind::finish);
}

TEST_CASE("two kinds of collective at one place wait forever, on both ranks") {
  const RunResult result = run(world_of(2), ends_after(short_deadline), wrong_order);
  CHECK(result.hung);
  CHECK(result.waiting.size() == 2);
}

TEST_CASE("collectives of another root, size or part never meet") {
  for (const auto call : {other_root, other_size, other_parts, no_such_root}) {
    const RunResult result = run(world_of(2), ends_after(short_deadline),
                                 [call](Rank& rank) { return mismatched(rank, call); });
    CHECK(result.hung);
    CHECK(result.waiting.size() == 2);
  }
}

TEST_CASE("a rank that raises ends alone, and the others are stuck without their buffers lost") {
  const RunResult result = run(world_of(3), ends_after(short_deadline), raises_on_one_rank);
  CHECK(result.hung);
  CHECK(result.ends[1].kind == RankEnd::Kind::raised);
  CHECK(result.ends[1].site == site_id("here"));
  CHECK(result.ends[0].kind == RankEnd::Kind::stuck);
  CHECK(result.waiting.size() == 2);
  CHECK(result.memory[0].at(DeviceId{0}).held == Bytes(4));
  CHECK(result.memory[1].at(DeviceId{0}).held == Bytes(0));
  const LaneJournal& raised = lane_zero(result, 1);
  CHECK(raised.row(raised.size() - 1).row == RowKind::raise);
  const LaneJournal& stuck = lane_zero(result, 0);
  CHECK(stuck.row(stuck.size() - 1).row == RowKind::settle);
}

TEST_CASE("a program that swallows the abort can do nothing more and leaves no rows") {
  Notes notes(2);
  const RunResult result = run(world_of(2), ends_after(short_deadline),
                               [&](Rank& rank) { return swallows_the_abort(rank, notes); });
  CHECK(result.hung);
  CHECK(notes == Notes{{1}, {1}});
  CHECK(result.ends[0].kind == RankEnd::Kind::stuck);
  CHECK(lane_zero(result, 0).size() == 2);  // the receive and its settle
}

TEST_CASE("a lost rank falls silent and the others hang") {
  RunOptions options = world_of(2);
  options.faults[1] = {{PlannedFault::Kind::lost_rank, 1, {}}};
  const RunResult result = run(options, ends_after(short_deadline), ordinary);
  CHECK(result.hung);
  CHECK(result.ends[1].kind == RankEnd::Kind::lost);
  REQUIRE(result.waiting.size() == 1);
  CHECK(result.waiting[0].rank == 0);
}

TEST_CASE("two lanes of a rank meet by promises") {
  Notes notes(2);
  const RunResult result =
      run(world_of(2), ends_after(plenty), [&](Rank& rank) { return two_lanes(rank, notes); });
  CHECK_FALSE(result.hung);
  CHECK(notes == Notes{{84, 3}, {84, 3}});  // two promises came before
  CHECK(result.journal->lanes(0) == 2);
}

TEST_CASE("a run with a lane that waits forever hangs although the main lane has ended") {
  const RunResult result = run(world_of(1), ends_after(short_deadline), leaves_a_lane_waiting);
  CHECK(result.hung);
  CHECK(result.ends[0].kind == RankEnd::Kind::finished);
  REQUIRE(result.waiting.size() == 1);
  CHECK(result.waiting[0].lane == LaneId{1});
}

TEST_CASE("settle_any returns with whichever ticket has settled") {
  Notes notes(2);
  const RunResult result =
      run(world_of(2), ends_after(plenty), [&](Rank& rank) { return first_of_two(rank, notes); });
  CHECK_FALSE(result.hung);
  CHECK(notes == Notes{{1}, {1}});
}

TEST_CASE("a full launch queue holds the host back and lets it go on") {
  RunOptions options = world_of(2);
  options.launch_queue = 1;
  const RunResult ended = run(options, ends_after(plenty), fills_the_launch_queue);
  CHECK_FALSE(ended.hung);
  CHECK(ended.operations == 22);
  const RunResult stuck = run(options, ends_after(short_deadline), held_back_for_ever);
  CHECK(stuck.hung);
  REQUIRE(stuck.waiting.size() == 2);
  CHECK(stuck.waiting[0].tickets == std::vector<Ticket>{{1, LaneId{0}}});
}

TEST_CASE("the checking decorator stops the rank that differs") {
  RunOptions options = world_of(2);
  options.check = true;
  const RunResult result = run(options, ends_after(short_deadline), wrong_order);
  const bool one_raised = (result.ends[0].kind == RankEnd::Kind::raised) !=
                          (result.ends[1].kind == RankEnd::Kind::raised);
  CHECK(one_raised);
}

TEST_CASE("a recorded run replays to the same journal") {
  RunOptions options = world_of(3);
  const RunResult first = run(options, ends_after(plenty), ordinary);
  options.replay = first.journal.get();
  const RunResult second = run(options, ends_after(plenty), ordinary);
  CHECK(differences(*first.journal, *second.journal).empty());
}

TEST_CASE("200 runs, some of them hung, leave no thread and no descriptor") {
  const int64_t threads = entries_of("/proc/self/task");
  const int64_t descriptors = entries_of("/proc/self/fd");
  {
    Fleet fleet;
    for (int32_t turn = 0; turn < 200; ++turn) {
      const bool hangs = turn % 40 == 39;
      const RunResult result =
          run(world_of(1 + turn % 4), ends_after(hangs ? milliseconds(50) : plenty, &fleet),
              hangs ? ProgramOfRank(missing_call) : ProgramOfRank(ordinary));
      CHECK(result.hung == hangs);
    }
  }
  CHECK(entries_of("/proc/self/task") == threads);
  CHECK(entries_of("/proc/self/fd") == descriptors);
}

}  // namespace lockstep::backend::gloo_endings_test
