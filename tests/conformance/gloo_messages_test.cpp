// Point-to-point messages and process groups of the in-process real world.
#include <catch2/catch.hpp>

#include <algorithm>

#include "tests/conformance/gloo_world.hpp"

namespace lockstep::backend::gloo_messages_test {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds plenty{5000};
constexpr milliseconds short_deadline{200};

// Two messages with the same tag keep their order; a message with another tag overtakes them.
Program ordered_messages(Rank& rank, Notes& notes) {
  if (rank.id() == 0) {
    const Slice first = metric(rank, DType::fp32, {1});
    const Slice second = metric(rank, DType::fp32, {2});
    const Slice other = metric(rank, DType::fp32, {3});
    CommunicationOptions elsewhere;
    elsewhere.on = stream(queue::first_named);
    const Ticket tickets[] = {rank.send(world_group, first, 1), rank.send(world_group, second, 1),
                              rank.send(world_group, other, 1, 7, elsewhere)};
    co_await rank.settle_all(tickets);
  } else {
    const Slice data = metric(rank, DType::fp32, {0});
    for (const int32_t tag : {7, 0, 0}) {
      const Ticket done = rank.receive(world_group, data, 0, tag);
      co_await rank.settle(done);
      note(notes, rank, rank.read(data));
    }
  }
}

// Everybody sends to everybody, itself included, receives first: no order among the parts.
Program grouped_exchange(Rank& rank, Notes& notes) {
  const Slice mine = metric(rank, DType::fp64, {rank.id() + 0.5});
  const Slice all = rank.allocate(Purpose::metric, DType::fp64, rank.world_size());
  GroupedCall call(rank);
  for (int32_t peer = 0; peer < rank.world_size(); ++peer) {
    call.receive(world_group, all.part(peer, 1), peer);
  }
  for (int32_t peer = 0; peer < rank.world_size(); ++peer) {
    call.send(world_group, mine, peer);
  }
  const Ticket done = call.submit();
  co_await rank.settle(done);
  note(notes, rank, rank.read(all));
}

// Rank 0 names its receives in an order that the others cannot follow: rank 2 must send to rank 0
// before rank 1 can.
Program grouped_receives_do_not_queue(Rank& rank, Notes& notes) {
  const Slice a = metric(rank, DType::fp32, {0});
  const Slice b = metric(rank, DType::fp32, {10.0 * rank.id()});
  if (rank.id() == 0) {
    GroupedCall call(rank);
    call.receive(world_group, a, 1).receive(world_group, b, 2);
    const Ticket done = call.submit();
    co_await rank.settle(done);
    note(notes, rank, rank.read(a));
    note(notes, rank, rank.read(b));
  } else if (rank.id() == 1) {
    const Ticket from_two = rank.receive(world_group, a, 2);
    const Ticket to_zero = rank.send(world_group, b, 0);
    const Ticket tickets[] = {from_two, to_zero};
    co_await rank.settle_all(tickets);
  } else {
    const Ticket to_zero = rank.send(world_group, b, 0);
    const Ticket to_one = rank.send(world_group, b, 1);
    const Ticket tickets[] = {to_zero, to_one};
    co_await rank.settle_all(tickets);
  }
}

Program any_source(Rank& rank, Notes& notes) {
  const Slice data = metric(rank, DType::int64, {10.0 * rank.id()});
  if (rank.id() != 0) {
    const Ticket done = rank.send(world_group, data, 0, 3);
    co_await rank.settle(done);
    co_return;
  }
  for (int32_t i = 1; i < rank.world_size(); ++i) {
    const Ticket done = rank.receive(world_group, data, any_rank, 3);
    const Status status = co_await rank.settle(done);
    note(notes, rank, rank.read(data));
    CHECK(notes[0].back() == 10.0 * status.source.value);
  }
}

Program both_send_first(Rank& rank, Notes& notes, int64_t elements) {
  const int32_t peer = 1 - rank.id();
  const Slice out = rank.allocate(Purpose::metric, DType::uint8, elements);
  const Slice in = rank.allocate(Purpose::metric, DType::uint8, elements);
  rank.write(out.part(0, 1), Values::of(DType::uint8, {rank.id() + 1.0}));
  const Ticket sent = rank.send(world_group, out, peer);
  co_await rank.settle(sent);
  const Ticket received = rank.receive(world_group, in, peer);
  co_await rank.settle(received);
  note(notes, rank, rank.read(in.part(0, 1)));
}

Program sizes_differ(Rank& rank) {
  const Slice data = metric(rank, DType::fp32, {1, 2});
  const Ticket done = rank.id() == 0 ? rank.send(world_group, data, 1)
                                     : rank.receive(world_group, data.part(0, 1), 0);
  co_await rank.settle(done);
}

Program never_received(Rank& rank) {
  const Slice data = metric(rank, DType::fp32, {1});
  if (rank.id() == 0) {
    rank.send(world_group, data, 1);
  }
  co_return;
}

// Even ranks by list, then all by colour out of a group that is not the world.
Program groups(Rank& rank, Notes& notes) {
  const std::vector<int64_t> first_three{2, 1, 0};
  const Rank::NewGroup listed = rank.new_group(world_group, first_three);
  co_await rank.settle(listed.ready);
  if (rank.id() == 3) {
    co_return;
  }
  const Slice order = metric(rank, DType::fp32, {static_cast<double>(rank.id())});
  const Slice whole = rank.allocate(Purpose::metric, DType::fp32, 3);
  const Ticket gathered = rank.all_gather(listed.group, order, whole);
  co_await rank.settle(gathered);
  note(notes, rank, rank.read(whole));

  const int32_t color = rank.id() == 1 ? no_color : 5;
  const Rank::NewGroup colored = rank.split_group(listed.group, color);
  co_await rank.settle(colored.ready);
  if (color == no_color) {
    co_return;
  }
  const Slice sum = metric(rank, DType::fp32, {rank.id() + 1.0});
  const Ticket summed = rank.all_reduce(colored.group, sum, Reduction::sum);
  co_await rank.settle(summed);
  note(notes, rank, rank.read(sum));
}

Program lists_differ(Rank& rank) {
  const std::vector<int64_t> members =
      rank.id() == 0 ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{1, 0};
  const Rank::NewGroup made = rank.new_group(world_group, members);
  co_await rank.settle(made.ready);
  const Ticket barrier = rank.barrier(made.group);
  co_await rank.settle(barrier);
}

}  // namespace

TEST_CASE("messages of one pair and tag arrive in order, those of another tag when they come") {
  Notes notes(2);
  const RunResult result = run(world_of(2), ends_after(plenty),
                               [&](Rank& rank) { return ordered_messages(rank, notes); });
  CHECK_FALSE(result.hung);
  CHECK(notes[1] == std::vector<double>{3, 1, 2});
}

TEST_CASE("a grouped exchange has no order among its parts and may include the rank itself") {
  for (int32_t world = 1; world <= 4; ++world) {
    Notes notes(static_cast<size_t>(world));
    const RunResult result = run(world_of(world), ends_after(plenty),
                                 [&](Rank& rank) { return grouped_exchange(rank, notes); });
    CHECK_FALSE(result.hung);
    std::vector<double> expected;
    for (int32_t rank = 0; rank < world; ++rank) {
      expected.push_back(rank + 0.5);
    }
    CHECK(notes == Notes(static_cast<size_t>(world), expected));
  }
}

TEST_CASE("a receive of a grouped call does not wait for the one before it") {
  Notes notes(3);
  const RunResult result = run(world_of(3), ends_after(plenty), [&](Rank& rank) {
    return grouped_receives_do_not_queue(rank, notes);
  });
  CHECK_FALSE(result.hung);
  CHECK(notes[0] == std::vector<double>{10, 20});
}

TEST_CASE("a receive from any rank says who came, and the choice is recorded") {
  Notes notes(4);
  const RunResult result =
      run(world_of(4), ends_after(plenty), [&](Rank& rank) { return any_source(rank, notes); });
  CHECK_FALSE(result.hung);
  std::vector<double> taken = notes[0];
  std::ranges::sort(taken);
  CHECK(taken == std::vector<double>{10, 20, 30});
  int64_t choices = 0;
  std::as_const(*result.journal).lane(0, 0).for_each([&](const Row& row) {
    choices += row.row == RowKind::choice ? 1 : 0;
  });
  CHECK(choices == 3);
}

TEST_CASE("a receive without source ends the rank where the backend has none") {
  RunOptions options = world_of(1);
  options.any_source = false;
  Notes notes(1);
  const RunResult result = run(options, ends_after(plenty), [](Rank& rank) -> Program {
    rank.receive(world_group, Slice::of_size(Bytes(1)), any_rank);
    co_return;
  });
  CHECK(result.ends[0].kind == RankEnd::Kind::raised);
}

TEST_CASE("two ranks that both send first hang by rendezvous and end by eager sends") {
  Fleet fleet;
  RunOptions options = world_of(2);
  options.eager_limit = Bytes(64);
  Notes notes(2);
  const auto program = [&](int64_t elements) {
    return [&notes, elements](Rank& rank) { return both_send_first(rank, notes, elements); };
  };
  CHECK_FALSE(run(options, ends_after(plenty, &fleet), program(64)).hung);
  CHECK(notes == Notes{{2}, {1}});
  CHECK(run(options, ends_after(short_deadline, &fleet), program(65)).hung);
  options.eager_limit = Bytes(0);
  CHECK(run(options, ends_after(short_deadline, &fleet), program(64)).hung);
}

TEST_CASE("a send and a receive of different sizes both wait forever") {
  const RunResult result =
      run(world_of(2), ends_after(short_deadline), [](Rank& rank) { return sizes_differ(rank); });
  CHECK(result.hung);
  REQUIRE(result.waiting.size() == 2);
  CHECK(result.waiting[0].tickets == std::vector<Ticket>{{1, LaneId{0}}});
  CHECK(result.waiting[1].tickets == std::vector<Ticket>{{1, LaneId{0}}});
}

TEST_CASE("what is still in flight when all lanes have ended is aborted, and no hang") {
  Fleet fleet;
  for (int repeat = 0; repeat < 2; ++repeat) {
    const RunResult result = run(world_of(2), ends_after(short_deadline, &fleet),
                                 [](Rank& rank) { return never_received(rank); });
    CHECK_FALSE(result.hung);
    CHECK(std::as_const(*result.journal).lane(0, 0).completion(1).outcome == Outcome::aborted);
  }
}

TEST_CASE("groups by list keep the order of the list, groups by colour that of ranks") {
  Notes notes(4);
  const RunResult result =
      run(world_of(4), ends_after(plenty), [&](Rank& rank) { return groups(rank, notes); });
  CHECK_FALSE(result.hung);
  CHECK(notes == Notes{{2, 1, 0, 4}, {2, 1, 0}, {2, 1, 0, 4}, {}});
  const auto& known = result.journal->groups;
  const std::vector<int32_t> list{2, 1, 0};
  const uint64_t key = communicator_key(0, 0, list);
  for (size_t rank = 0; rank < 4; ++rank) {
    REQUIRE(known[rank].size() == (rank == 3 ? 2 : 3));
    CHECK(known[rank][1].communicator == key);
    CHECK(known[rank][1].members == list);
  }
  const std::vector<int32_t> colored{0, 2};
  CHECK(known[0][2].members == colored);
  CHECK(known[0][2].communicator == communicator_key(key, 1, colored));
  CHECK(known[1][2].members.empty());
}

TEST_CASE("ranks that list different members make different groups and never meet in them") {
  const RunResult result =
      run(world_of(2), ends_after(short_deadline), [](Rank& rank) { return lists_differ(rank); });
  CHECK(result.hung);
  CHECK(result.waiting.size() == 2);
  CHECK(result.journal->groups[0][1].communicator != result.journal->groups[1][1].communicator);
}

}  // namespace lockstep::backend::gloo_messages_test
