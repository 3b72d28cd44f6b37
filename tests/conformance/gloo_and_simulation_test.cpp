// The same program in the simulated and in the in-process real world.
#include <catch2/catch.hpp>

#include "sim/plain_cost.hpp"
#include "sim/simulation.hpp"
#include "tests/conformance/gloo_world.hpp"

using namespace lockstep;

namespace gloo_and_simulation_test {
using std::chrono::milliseconds;

namespace {

RunResult simulated(const RunOptions& options, const ProgramOfRank& program) {
  const sim::ExplicitComputeCost compute;
  sim::FlatNetworkCost network(options.world_size, 10_GBps, 1_us);
  sim::SimulationOptions simulation;
  simulation.compute = &compute;
  simulation.communication = &network;
  return sim::simulate(options, simulation, program);
}

void check_equal(const RunOptions& options, const ProgramOfRank& program, bool hangs) {
  RunOptions detailed = options;
  detailed.journal.lists = true;
  const RunResult left = simulated(detailed, program);
  const RunResult right =
      backend::run(detailed, backend::ends_after(milliseconds(hangs ? 200 : 10'000)), program);
  CHECK(left.hung == hangs);
  CHECK(right.hung == hangs);
  for (const JournalDifference& difference : differences(*left.journal, *right.journal, 4)) {
    UNSCOPED_INFO("rank " << difference.rank << " lane " << difference.lane << " row "
                          << difference.row << ": " << difference.text);
    CHECK(false);
  }
  REQUIRE(left.waiting.size() == right.waiting.size());
  for (size_t i = 0; i < left.waiting.size(); ++i) {
    CHECK(left.waiting[i].rank == right.waiting[i].rank);
    CHECK(left.waiting[i].lane == right.waiting[i].lane);
    CHECK(left.waiting[i].tickets == right.waiting[i].tickets);
  }
  REQUIRE(left.ends.size() == right.ends.size());
  for (size_t rank = 0; rank < left.ends.size(); ++rank) {
    CHECK(left.ends[rank].kind == right.ends[rank].kind);
    const auto peak = [rank](const RunResult& result) {
      const auto device = result.memory[rank].find(DeviceId{0});
      return device == result.memory[rank].end() ? Bytes(0) : device->second.peak;
    };
    CHECK(peak(left) == peak(right));
  }
  CHECK(left.operations == right.operations);
}

Program answers(Rank& rank, Ticket asked, Ticket answered) {
  co_await rank.settle(asked);
  rank.fulfil(answered);
}

// A bit of everything, with values that decide what is done next.
Program mixture(Rank& rank) {
  const int32_t world = rank.world_size();
  const Slice data = backend::metric(rank, DType::fp32, {0.1 * rank.id(), 1.0 / (rank.id() + 3)});
  const Ticket mean = rank.all_reduce(world_group, data, Reduction::avg);
  co_await rank.settle(mean);
  const std::vector<int64_t> some{0, world - 1};
  const Rank::NewGroup pair = rank.new_group(world_group, some);
  const Rank::NewGroup halves = rank.split_group(world_group, rank.id() % 2);
  const Rank::NewGroup blocks = rank.split_group(world_group, ColorRule{2});
  const Rank::NewGroup firsts = rank.split_group(world_group, ColorRule{2, 0});
  const Ticket made[] = {pair.ready, halves.ready, blocks.ready, firsts.ready};
  co_await rank.settle_all(made);
  const Ticket product = rank.all_reduce(halves.group, data, Reduction::product);
  // Of ranks 0 and 1, 2 and 3, ..; then of 0, 2, ..
  const Ticket of_block = rank.all_reduce(blocks.group, data, Reduction::sum);
  co_await rank.settle(of_block);
  if (rank.id() % 2 == 0) {
    const Ticket of_firsts = rank.all_reduce(firsts.group, data, Reduction::max);
    co_await rank.settle(of_firsts);
  }
  const Ticket asked = rank.promise();
  const Ticket answered = rank.promise();
  rank.start_lane(answers(rank, asked, answered));
  rank.fulfil(asked);
  const Ticket both[] = {product, answered};
  co_await rank.settle_all(both);
  GroupedCall call(rank);
  call.send(world_group, data, (rank.id() + 1) % world)
      .receive(world_group, data, (rank.id() + world - 1) % world);
  const Ticket exchanged = call.submit();
  co_await rank.settle(exchanged);
  const Values values = rank.read(data);
  // The branch depends on the last bit of a sum of floats.
  const bool odd = (std::to_integer<int>(values.bytes()[0]) & 1) != 0;
  const Slice extra = rank.allocate(Purpose::workspace, DType::fp16, odd ? 100 : 50);
  if (odd) {
    rank.compute(5_us);
  }
  const Ticket last = rank.event();
  co_await rank.settle(last);
  rank.release(extra);
}

// Each direction has its own stream of the same communicator.
Program two_directions(Rank& rank) {
  CommunicationOptions backwards;
  backwards.on = stream(queue::first_named);
  const Slice data = Slice::of_size(1_KiB);
  const int32_t peer = 1 - rank.id();
  const Ticket in = rank.receive(world_group, data, peer, 0, backwards);
  const Ticket out = rank.send(world_group, data, peer);
  const Ticket tickets[] = {in, out};
  co_await rank.settle_all(tickets);
}

Program leaves_one_out(Rank& rank) {
  for (int32_t call = 0; call < 3 - (rank.id() == 1 ? 1 : 0); ++call) {
    const Ticket done = rank.barrier(world_group);
    co_await rank.settle(done);
  }
}

Program raises_between(Rank& rank) {
  const Ticket first = rank.barrier(world_group);
  co_await rank.settle(first);
  if (rank.id() == 0) {
    throw ProgramException(site_id("here"), "out of luck");
  }
  const Ticket second = rank.barrier(world_group);
  co_await rank.settle(second);
}

Program swapped(Rank& rank) {
  const Slice data = backend::metric(rank, DType::fp32, {1});
  const Ticket one = rank.id() == 0 ? rank.broadcast(world_group, data, 0)
                                    : rank.all_reduce(world_group, data, Reduction::sum);
  co_await rank.settle(one);
}

Program not_a_member(Rank& rank) {
  const std::vector<int64_t> first{0};
  const Rank::NewGroup made = rank.new_group(world_group, first);
  co_await rank.settle(made.ready);
  const Ticket done = rank.barrier(made.group);
  co_await rank.settle(done);
}

// Rank 0 sends to the second receive first; by issue order its first message meets the first.
Program sizes_crossed(Rank& rank) {
  const Slice small = Slice::of_size(4_B);
  const Slice large = Slice::of_size(8_B);
  GroupedCall call(rank);
  if (rank.id() == 0) {
    call.send(world_group, large, 1).send(world_group, small, 1);
  } else {
    call.receive(world_group, small, 0).receive(world_group, large, 0);
  }
  const Ticket done = call.submit();
  co_await rank.settle(done);
}

}  // namespace

TEST_CASE("both worlds do the same in a program whose branches depend on sums of floats") {
  for (int32_t world = 2; world <= 4; ++world) {
    check_equal(backend::world_of(world), mixture, false);
  }
  RunOptions divided = backend::world_of(3);
  divided.average_order = AverageOrder::sum_then_divide;
  check_equal(divided, mixture, false);
}

TEST_CASE("both worlds let two streams of one communicator run beside each other") {
  check_equal(backend::world_of(2), two_directions, false);
}

TEST_CASE("both worlds hang at the same call of the same lanes") {
  for (const auto program :
       {leaves_one_out, raises_between, swapped, not_a_member, sizes_crossed}) {
    check_equal(backend::world_of(2), program, true);
  }
  check_equal(backend::world_of(4), leaves_one_out, true);
}

}  // namespace gloo_and_simulation_test
