// How runs end badly, in both worlds: exceptions, lost ranks, exhausted memory, unwound programs.
#include <stdexcept>

#include "tests/conformance/agreement.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace corner_endings_test {

namespace {

Program all_reduce_twice(Rank& rank, Seen& seen) {
  const Slice data = metric(rank, DType::fp32, {1});
  for (int32_t turn = 0; turn < 2; ++turn) {
    const Ticket done = rank.all_reduce(world_group, data, Reduction::sum);
    co_await rank.settle(done);
    seen.push_back(rank.read(data));
  }
}

Program raises(Rank& rank, Seen& seen) {
  if (rank.id() == 1) {
    throw ProgramException(site_id("raise"), "the user's own mistake");
  }
  co_await all_reduce_twice(rank, seen);
}

Program raises_what_is_no_program_exception(Rank& rank, Seen& seen) {
  if (rank.id() == 0) {
    throw std::out_of_range("an index");
  }
  co_await all_reduce_twice(rank, seen);
}

Program recovers(Rank& rank, Seen& seen) {
  try {
    co_await raises(rank, seen);
  } catch (const ProgramException&) {
    seen.push_back(Values::of(DType::uint8, {1}));
  }
  if (rank.id() == 1) {
    co_await all_reduce_twice(rank, seen);
  }
}

// Memory that is given back when the program is unwound.
class Held {
 public:
  Held(Rank& rank, int64_t elements)
      : rank_(&rank), slice_(rank.allocate(Purpose::activation, DType::fp32, elements)) {}
  ~Held() { rank_->release(slice_); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  const Slice& slice() const { return slice_; }

 private:
  Rank* rank_;
  Slice slice_;
};

Program waits_holding_memory(Rank& rank, Seen&) {
  const Held held(rank, 256);
  const Ticket never = rank.receive(world_group, held.slice(), 1 - rank.id());
  co_await rank.settle(never);
}

Program swallows_the_end(Rank& rank, Seen& seen) {
  try {
    co_await waits_holding_memory(rank, seen);
  } catch (const RankFailure&) {
  }
  const Ticket more = rank.barrier(world_group);
  co_await rank.settle(more);
}

Program too_large(Rank& rank, Seen&) {
  const Held first(rank, 100);
  const Held second(rank, rank.id() == 0 ? 100 : 10);
  const Ticket met = rank.barrier(world_group);
  co_await rank.settle(met);
}

// The buffer is given back while its all_reduce is under way; memory is free at once.
Program releases_in_flight(Rank& rank, Seen& seen) {
  const Slice sum = metric(rank, DType::fp32, {0});
  for (int32_t turn = 0; turn < 3; ++turn) {
    const Slice data = metric(rank, DType::fp32, {rank.id() + 1.0});
    const Ticket reduced = rank.all_reduce(world_group, data, Reduction::sum);
    const Ticket added = apply(rank, Kernel::add, data, sum, 0, {.after = {reduced}});
    rank.release(data);
    if (turn == 1) {
      co_await rank.settle(added);
    }
  }
  const Ticket end = rank.event();
  co_await rank.settle(end);
  seen.push_back(rank.read(sum));
}

Program never_settles(Rank& rank, Seen&) {
  const Slice data = metric(rank, DType::fp32, {1});
  if (rank.id() == 0) {
    rank.all_reduce(world_group, data, Reduction::sum);
  }
  co_return;
}

Arm with_fault(Worlds& worlds, PlannedFault::Kind kind) {
  RunOptions options = world_of(2);
  options.faults[1] = {{kind, 1, site_id("fault")}};
  return run_both(worlds, options, all_reduce_twice);
}

Program two_steps(Rank& rank, Seen& seen) {
  const Slice data = metric(rank, DType::fp32, {1});
  for (int64_t step = 0; step < 2; ++step) {
    rank.reached({"training_step", step, 0});
    const Ticket done = rank.all_reduce(world_group, data, Reduction::sum);
    co_await rank.settle(done);
    seen.push_back(rank.read(data));
  }
}

// Group creation, then one grouped call that sends to the other rank and receives from it.
Program exchanges(Rank& rank, Seen& seen) {
  const int64_t both[] = {0, 1};
  const Rank::NewGroup made = rank.new_group(world_group, both);
  co_await rank.settle(made.ready);
  const Slice mine = metric(rank, DType::fp32, {rank.id() + 1.0});
  const Slice theirs = metric(rank, DType::fp32, {0});
  GroupedCall call(rank);
  call.send(made.group, mine, 1 - rank.id()).receive(made.group, theirs, 1 - rank.id());
  const Ticket done = call.submit();
  co_await rank.settle(done);
  seen.push_back(rank.read(theirs));
}

using Kinds = std::vector<RankEnd::Kind>;

}  // namespace

TEST_CASE("an exception on one rank ends that rank, and the others wait forever") {
  Worlds worlds;
  for (const Body& body : {Body(raises), Body(raises_what_is_no_program_exception)}) {
    const Arm arm = run_both(worlds, world_of(2), body);
    CHECK(arm.result.hung);
    CHECK(unfinished(arm).size() == 2);
    CHECK(arm.result.waiting.size() == 1);
  }
}

TEST_CASE("an exception that its own rank catches leaves no trace") {
  Worlds worlds;
  const Arm arm = run_both(worlds, world_of(2), recovers);
  CHECK(unfinished(arm).empty());
  CHECK(numbers_of(arm.seen[0]) == Numbers{2, 4});
  CHECK(numbers_of(arm.seen[1]) == Numbers{1, 2, 4});
}

TEST_CASE("a program that waits forever keeps its memory and its last row, whatever it unwinds") {
  Worlds worlds;
  for (const Body& body : {Body(waits_holding_memory), Body(swallows_the_end)}) {
    const Arm arm = run_both(worlds, world_of(2), body);
    CHECK(ends_of(arm) == Kinds{RankEnd::Kind::stuck, RankEnd::Kind::stuck});
    CHECK(arm.result.memory[0].at(DeviceId{0}).held == Bytes(1024));
    CHECK(std::as_const(*arm.result.journal).lane(0, 0).size() == 3);
  }
}

TEST_CASE("a rank out of memory raises and hangs the other") {
  Worlds worlds;
  RunOptions options = world_of(2);
  options.device_memory = Bytes(600);
  const Arm arm = run_both(worlds, options, too_large);
  CHECK(ends_of(arm) == Kinds{RankEnd::Kind::raised, RankEnd::Kind::stuck});
  CHECK(arm.result.ends[0].out_of_memory);
  CHECK(arm.result.memory[0].at(DeviceId{0}).peak == Bytes(400));
}

TEST_CASE("injected faults end alike in both worlds") {
  Worlds worlds;
  CHECK(ends_of(with_fault(worlds, PlannedFault::Kind::lost_rank)) ==
        Kinds{RankEnd::Kind::stuck, RankEnd::Kind::lost});
  CHECK(ends_of(with_fault(worlds, PlannedFault::Kind::exception)) ==
        Kinds{RankEnd::Kind::stuck, RankEnd::Kind::raised});
  CHECK(ends_of(with_fault(worlds, PlannedFault::Kind::out_of_memory)) ==
        Kinds{RankEnd::Kind::stuck, RankEnd::Kind::raised});
  CHECK(ends_of(with_fault(worlds, PlannedFault::Kind::lost_message)) ==
        Kinds{RankEnd::Kind::stuck, RankEnd::Kind::finished});
  const Arm corrupted = with_fault(worlds, PlannedFault::Kind::corrupted_value);
  CHECK(unfinished(corrupted).empty());
  CHECK(numbers_of(corrupted.seen[0]) == Numbers{2, 0});  // 2 + (-2)
}

TEST_CASE("a buffer released in flight keeps its values until its operations have ended") {
  Worlds worlds;
  const Arm arm = run_both(worlds, world_of(3), releases_in_flight);
  CHECK(unfinished(arm).empty());
  CHECK(numbers_of(arm.seen[0]) == Numbers{18});
  CHECK(arm.result.memory[0].at(DeviceId{0}).peak == Bytes(8));
}

TEST_CASE("an operation that nobody waits for hangs nobody") {
  Worlds worlds;
  CHECK(unfinished(run_both(worlds, world_of(2), never_settles)).empty());
}

TEST_CASE("a fault strikes where the program says that it stands, alike in both worlds") {
  Worlds worlds;
  for (const auto& [kind, end] :
       {std::pair(PlannedFault::Kind::exception, RankEnd::Kind::raised),
        std::pair(PlannedFault::Kind::out_of_memory, RankEnd::Kind::raised),
        std::pair(PlannedFault::Kind::lost_rank, RankEnd::Kind::lost)}) {
    RunOptions options = world_of(2);
    PlannedFault fault{kind, PlannedFault::at_position, site_id("fault")};
    fault.at = {Instant::Kind::step, {}, 1};
    fault.hook = kind == PlannedFault::Kind::lost_rank ? "" : "training_step";
    fault.number = 5;
    options.faults[1] = {fault};
    const Arm arm = run_both(worlds, options, two_steps);
    CHECK(ends_of(arm) == Kinds{RankEnd::Kind::stuck, end});
    CHECK(numbers_of(arm.seen[1]) == Numbers{2});  // step 0 was taken
    CHECK(arm.result.struck_faults == std::set<std::pair<int32_t, int32_t>>{{5, 1}});
  }
}

TEST_CASE("a lost message takes what its call sends, not what it receives, and no group") {
  Worlds worlds;
  RunOptions options = world_of(2);
  options.faults[1] = {{PlannedFault::Kind::lost_message, 0, {}}};
  const Arm arm = run_both(worlds, options, exchanges);
  CHECK(arm.result.hung);
  CHECK(ends_of(arm) == Kinds{RankEnd::Kind::stuck, RankEnd::Kind::finished});
  CHECK(numbers_of(arm.seen[1]) == Numbers{1});
}

}  // namespace corner_endings_test
