// What the host of a rank does where a device fails, is full, or holds the host.
#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>

#include "backend/device/group_making.hpp"
#include "backend/device/watchdog.hpp"
#include "tests/conformance/world.hpp"

namespace lockstep::test::device_host_test {

namespace {

using std::chrono::milliseconds;

/// Runs one rank alone on a device that the test has in its hands.
RunResult run_alone(FakeDevice& device, Fabric& fabric, const RunOptions& options,
                    const ProgramOfRank& program) {
  FakeBoard board(fabric);
  return backend::run_rank(options, milliseconds(200), {0, device, board, [] {}, milliseconds(200)},
                           program);
}

Program allocates(Rank& rank) {
  const Slice data = rank.allocate(Purpose::metric, DType::fp32, 1000);
  rank.release(data);
  co_return;
}

Program reduces_alone(Rank& rank) {
  const Slice data = metric(rank, DType::fp32, {1});
  const Ticket reduced = rank.all_reduce(world_group, data, Reduction::sum);
  co_await rank.settle(reduced);
}

/// Releases buffers whose operations are in flight, waits, and keeps one.
Program releases(Rank& rank) {
  const Slice first = metric(rank, DType::fp32, {1});
  const Slice kept = metric(rank, DType::fp32, {2});
  const Ticket added = apply(rank, Kernel::add, first, kept);
  rank.release(first);
  co_await rank.settle(added);
}

/// A device whose kernels wait until communication is aborted, as an allocation of CUDA may behind
/// a waiting kernel of NCCL.
class HoldingDevice final : public backend::Device {
 public:
  void start_clock() override {}
  void allocate(BufferId, const BufferSpec&, bool) override {}
  void release(BufferId) override {}
  void write(const Slice&, const Values&) override {}
  Values read(const Slice&) override { return {}; }
  backend::Mark mark(backend::StreamNumber) override { return 1; }
  void wait_for(backend::StreamNumber, backend::Mark) override {}
  bool reached(backend::Mark) override { return true; }
  Time time_of(backend::Mark) override { return {}; }
  void forget(backend::Mark) override {}
  bool waits_for_device(const Op&) const override { return false; }
  void compute(const Op&) override {
    while (!aborted) {
      // A held kernel tells nobody: only abort_links of another thread ends it.
      std::this_thread::sleep_for(milliseconds(1));
    }
    throw backend::DeviceError("released");
  }
  backend::LinkId open_link(const std::string&, int32_t, int32_t) override { return 0; }
  backend::LinkState state_of(backend::LinkId) override { return backend::LinkState::broken; }
  std::string trouble_of(backend::LinkId) override { return ""; }
  void communicate(backend::StreamNumber, std::span<const backend::LinkedOp>) override {}
  void complete(backend::StreamNumber, std::span<const backend::LinkedOp>) override {}
  void abort_links() noexcept override { aborted = true; }

  std::atomic<bool> aborted = false;
};

Program computes(Rank& rank) {
  const Ticket done = rank.compute(Time(1));
  co_await rank.settle(done);
}

}  // namespace

TEST_CASE("a device that is full raises out of memory on its rank, and holds nothing of it") {
  Fabric fabric;
  const RunOptions options = world_of(1);
  FakeDevice device(fabric, options);
  device.room = 3999;
  const RunResult result = run_alone(device, fabric, options, allocates);
  CHECK(result.ends[0].kind == RankEnd::Kind::raised);
  CHECK(result.ends[0].out_of_memory);
  CHECK(result.memory[0].at(DeviceId{0}).held == Bytes(0));
}

TEST_CASE("the device keeps a released buffer until its operations have ended") {
  Fabric fabric;
  const RunOptions options = world_of(1);
  FakeDevice device(fabric, options);
  const RunResult result = run_alone(device, fabric, options, releases);
  CHECK(result.ends[0].kind == RankEnd::Kind::finished);
  CHECK(device.buffers_held() == 1);
}

TEST_CASE("a broken link fails its operations, and the rank that settles them") {
  Fabric fabric;
  const RunOptions options = world_of(2);
  FakeDevice device(fabric, options);
  device.abort_links();
  const RunResult result = run_alone(device, fabric, options, reduces_alone);
  CHECK_FALSE(result.hung);
  CHECK(result.ends[0].kind == RankEnd::Kind::failed);
}

TEST_CASE(
    "what the library says of a broken link is reported once, and is no failure of the rank's "
    "own") {
  Fabric fabric;
  FakeBoard board(fabric);
  const RunOptions options = world_of(2);
  FakeDevice device(fabric, options);
  device.trouble = "unhandled system error";
  device.abort_links();
  std::vector<std::string> told;
  backend::DeviceSeat seat{0, device, board, [] {}};
  seat.tell = [&told](const std::string& text) { told.push_back(text); };
  const RunResult result =
      backend::run_rank(options, milliseconds(200), seat, [](Rank& rank) -> Program {
        const Slice data = metric(rank, DType::fp32, {1});
        const Ticket reduced = rank.all_reduce(world_group, data, Reduction::sum);
        co_await rank.settle(reduced);
      });
  CHECK(told == std::vector<std::string>{"a connection broke: unhandled system error"});
  CHECK(result.ends[0].kind == RankEnd::Kind::failed);
}

TEST_CASE("what the device refuses is what its rank raises") {
  Fabric fabric;
  const RunOptions options = world_of(1);
  FakeDevice device(fabric, options);
  device.refusal = "an illegal memory access was encountered";
  const RunResult result = run_alone(device, fabric, options, computes);
  CHECK(result.ends[0].kind == RankEnd::Kind::raised);
  CHECK(result.ends[0].message == "an illegal memory access was encountered");
}

TEST_CASE("a rank whose peer never comes hangs until its deadline, and says what it waits for") {
  Fabric fabric;
  const RunOptions options = world_of(2);
  FakeDevice device(fabric, options);
  const RunResult result = run_alone(device, fabric, options, reduces_alone);
  CHECK(result.hung);
  CHECK(result.ends[0].kind == RankEnd::Kind::stuck);
  REQUIRE(result.waiting.size() == 1);
  CHECK(result.waiting[0].tickets == std::vector<Ticket>{Ticket{1, LaneId{0}}});
}

TEST_CASE("a host that its device holds is let go after the deadline, as a hang") {
  Fabric fabric;
  FakeBoard board(fabric);
  HoldingDevice device;
  const RunResult result = backend::run_rank(world_of(1), std::chrono::seconds(20),
                                             {0, device, board, [] {}, milliseconds(50)}, computes);
  CHECK(device.aborted);
  CHECK(result.ends[0].kind != RankEnd::Kind::finished);
}

TEST_CASE("the watchdog lets go of one long call, and of no short ones") {
  std::atomic<int> released = 0;
  backend::Watchdog watchdog(milliseconds(100), [&released] { ++released; });
  for (int call = 0; call < 5; ++call) {
    const backend::WatchedCall watched(watchdog);
  }
  CHECK_FALSE(watchdog.has_released());
  const backend::WatchedCall watched(watchdog);
  while (released == 0) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  CHECK(watchdog.has_released());
}

TEST_CASE("a group by colour comes to be when all members of its parent have named theirs") {
  Fabric fabric;
  FakeBoard board(fabric);
  Op op;
  op.kind = OpKind::new_group;
  op.flags = flag_color;
  op.peer = 7;
  const std::vector<int32_t> parent{0, 2, 3};
  backend::GroupMaking last(op, 5, 1, parent, 3, board);
  CHECK_FALSE(last.all_came());
  backend::GroupMaking first(op, 5, 1, parent, 0, board);
  op.peer = no_color;
  backend::GroupMaking outsider(op, 5, 1, parent, 2, board);
  CHECK(first.all_came());
  op.peer = 7;
  CHECK(first.members() == std::vector<int32_t>{0, 3});
}

}  // namespace lockstep::test::device_host_test
