// One rank on a real GPU: memory, streams, copies, and the communicator of a world of one. Needs a
// GPU: ./dev gpu-check.
#include <catch2/catch.hpp>

#include "backend/device/own_board.hpp"
#include "backend/device/world.hpp"
#include "backend/nccl/cuda_device.hpp"

namespace lockstep::backend::device_test {

namespace {

using Seen = std::vector<Values>;

RunResult run_alone(const std::function<Program(Rank&)>& program,
                    Bytes device_memory = Bytes::max(),
                    std::chrono::milliseconds deadline = std::chrono::seconds(20)) {
  RunOptions options;
  options.numerics = true;
  options.device_memory = device_memory;
  OwnBoard board;
  CudaDevice device({0}, options, 0, board);
  return run_rank(options, deadline, {0, device, board, [] {}, deadline}, program);
}

Slice metric(Rank& rank, const Values& values, DeviceId device = DeviceId{0}) {
  const Slice slice = rank.allocate(Purpose::metric, values.dtype(), values.size(), device);
  rank.write(slice, values);
  return slice;
}

Program writes_and_reads(Rank& rank, Seen& seen) {
  for (const DType dtype : {DType::fp64, DType::fp32, DType::bf16, DType::fp16, DType::int64,
                            DType::int32, DType::uint8}) {
    seen.push_back(rank.read(metric(rank, Values::of(dtype, {1, 2, 3})).part(1, 2)));
  }
  co_return;
}

Program copies(Rank& rank, Seen& seen) {
  const Slice here = metric(rank, Values::of(DType::fp32, {1, 2, 3}));
  const Slice on_host = metric(rank, Values(DType::fp32, 3), host_device);
  const Slice back = metric(rank, Values(DType::fp32, 3));
  const Ticket out = rank.copy(here, on_host, {.on = copy_stream});
  const Ticket in = rank.copy(on_host, back, {.on = communication_stream, .after = {out}});
  co_await rank.settle(in);
  seen.push_back(rank.read(back));
}

Program doubles_over_streams(Rank& rank, Seen& seen) {
  const Slice data = metric(rank, Values::of(DType::fp32, {1}));
  const double two = 2;
  Ticket last{};
  for (int turn = 0; turn < 20; ++turn) {
    KernelCall call;
    call.kernel = Kernel::scale;
    call.writes = {&data, 1};
    call.scalars = {&two, 1};
    last =
        rank.compute(call, {.on = turn % 2 == 0 ? compute_stream : copy_stream, .after = {last}});
  }
  co_await rank.settle(last);
  seen.push_back(rank.read(data));
}

Program communicates_alone(Rank& rank, Seen& seen) {
  for (const DType dtype : {DType::fp32, DType::int64}) {
    const Slice data = metric(rank, Values::of(dtype, {3, 5}));
    const Slice other = metric(rank, Values(dtype, 2));
    for (const Ticket ticket :
         {rank.all_reduce(world_group, data, Reduction::avg),
          rank.all_gather(world_group, data, other), rank.broadcast(world_group, data, 0),
          rank.reduce_scatter(world_group, data, other, Reduction::sum),
          rank.all_to_all(world_group, data, other), rank.barrier(world_group)}) {
      co_await rank.settle(ticket);
    }
    seen.push_back(rank.read(other));
  }
}

Program receives_from_nobody(Rank& rank) {
  const Slice data = metric(rank, Values(DType::fp32, 1));
  const Ticket never = rank.receive(world_group, data, 1);
  co_await rank.settle(never);
}

Program takes_too_much(Rank& rank) {
  rank.allocate(Purpose::workspace, DType::uint8, int64_t{1} << 45);
  co_return;
}

}  // namespace

TEST_CASE("what is written to a GPU is read back in every type, from the middle of a buffer") {
  Seen seen;
  const RunResult result = run_alone([&](Rank& rank) { return writes_and_reads(rank, seen); });
  CHECK(result.ends[0].kind == RankEnd::Kind::finished);
  REQUIRE(seen.size() == 7);
  for (const Values& values : seen) {
    CHECK(values == Values::of(values.dtype(), {2, 3}));
  }
}

TEST_CASE("copies go to the host and back in the order of their tickets") {
  Seen seen;
  run_alone([&](Rank& rank) { return copies(rank, seen); });
  CHECK(seen == Seen{Values::of(DType::fp32, {1, 2, 3})});
}

TEST_CASE("kernels of two streams keep the order of their tickets, and have times") {
  Seen seen;
  const RunResult result = run_alone([&](Rank& rank) { return doubles_over_streams(rank, seen); });
  CHECK(seen == Seen{Values::of(DType::fp32, {1048576})});
  const Completion last = result.journal->lane(0, LaneId{0}).completion(20);
  CHECK(last.outcome == Outcome::ok);
  CHECK((last.start > Time{} && last.finish >= last.start && last.finish <= result.total_time));
}

TEST_CASE("every collective of a world of one gives what it got") {
  Seen seen;
  const RunResult result = run_alone([&](Rank& rank) { return communicates_alone(rank, seen); });
  CHECK(result.ends[0].kind == RankEnd::Kind::finished);
  CHECK(seen == Seen{Values::of(DType::fp32, {3, 5}), Values::of(DType::int64, {3, 5})});
}

TEST_CASE("a receive that nobody answers is ended by its deadline") {
  const RunResult result =
      run_alone(receives_from_nobody, Bytes::max(), std::chrono::milliseconds(500));
  CHECK(result.hung);
}

TEST_CASE("a GPU that is full raises out of memory") {
  const RunResult result = run_alone(takes_too_much);
  CHECK(result.ends[0].out_of_memory);
}

}  // namespace lockstep::backend::device_test
