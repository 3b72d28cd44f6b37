// Corner programs of data parallelism, in both worlds: overlap, several devices, offload, join.
#include "model/strategy/data_parallel/ddp.hpp"
#include "model/strategy/data_parallel/dp.hpp"
#include "tests/conformance/agreement.hpp"
#include "tests/unit/strategy/simulated.hpp"

using namespace lockstep;
using namespace lockstep::test;
using namespace lockstep::literals;

namespace corner_data_parallel_test {

namespace {

constexpr int32_t layers = 4;

// Each layer's gradients travel while earlier layers still go backward.
Program overlapping_iteration(Rank& rank, Seen& seen) {
  for (int32_t layer = 0; layer < layers; ++layer) {
    rank.compute(1_ms);
  }
  std::vector<Slice> gradients;
  std::vector<Ticket> reduced;
  for (int32_t layer = layers - 1; layer >= 0; --layer) {
    rank.compute(2_ms);
    const Slice gradient = rank.allocate(Purpose::gradient, DType::fp32, 3);
    const Ticket done = apply(rank, Kernel::fill, {}, gradient, (rank.id() + 1.0) * layer);
    reduced.push_back(rank.all_reduce(world_group, gradient, Reduction::avg, {.after = {done}}));
    gradients.push_back(gradient);
  }
  co_await rank.settle_all(reduced);
  for (const Slice& gradient : gradients) {
    seen.push_back(rank.read(gradient.part(0, 1)));
    rank.release(gradient);
  }
}

// The activation leaves the device between forward and backward.
Program offload(Rank& rank, Seen& seen) {
  const Slice activation = rank.allocate(Purpose::activation, DType::fp32, 1000);
  const Ticket forward = apply(rank, Kernel::fill, {}, activation, rank.id() + 5);
  const Slice aside = rank.allocate(Purpose::activation, DType::fp32, 1000, host_device);
  const Ticket out = rank.copy(activation, aside, {.on = copy_stream, .after = {forward}});
  co_await rank.settle(out);
  rank.release(activation);
  const Slice other = rank.allocate(Purpose::workspace, DType::fp32, 900);
  const Ticket used = apply(rank, Kernel::fill, {}, other, 1);
  co_await rank.settle(used);
  rank.release(other);
  const Slice back = rank.allocate(Purpose::activation, DType::fp32, 1000);
  const Ticket in = rank.copy(aside, back, {.on = copy_stream});
  const Ticket doubled = apply(rank, Kernel::scale, back, back, 2, {.after = {in}});
  co_await rank.settle(doubled);
  seen.push_back(rank.read(back.part(999, 1)));
}

// A rank whose data have ended takes part with zeros until nobody has data any more.
Program join_with_shadows(Rank& rank, Seen& seen) {
  const int64_t own_steps = 2 + rank.id();
  const Slice active = metric(rank, DType::int64, {0});
  const Slice gradient = metric(rank, DType::fp32, {0});
  for (int64_t step = 0;; ++step) {
    const bool has_data = step < own_steps;
    rank.write(active, Values::of(DType::int64, {has_data ? 1.0 : 0.0}));
    const Ticket counted = rank.all_reduce(world_group, active, Reduction::sum);
    co_await rank.settle(counted);
    if (rank.read(active).integer(0) == 0) {
      break;
    }
    rank.write(gradient, Values::of(DType::fp32, {has_data ? rank.id() + 1.0 : 0.0}));
    const Ticket summed = rank.all_reduce(world_group, gradient, Reduction::sum);
    co_await rank.settle(summed);
    seen.push_back(rank.read(gradient));
  }
}

TrainingPlan exact_plan(const Network& network) {
  TrainingPlan plan;
  plan.network = &network;
  plan.numerics = true;
  plan.integer_values = true;
  plan.optimizers.front().lr = 0.125;
  return plan;
}

Program train_with(Rank& rank, std::unique_ptr<Strategy> strategy, Shard shard, Seen& seen) {
  const Asked synchronised;
  co_await train(rank, strategy.get(), std::move(shard), synchronised, 4, &seen);
}

Shard samples_of_rank(int64_t per_step, int64_t steps, int64_t more_steps_per_rank) {
  return [=](int32_t rank, int64_t step) {
    Batch batch;
    const int64_t end = steps + rank * more_steps_per_rank;
    for (int64_t i = 0; step < end && i < per_step; ++i) {
      batch.samples.push_back(16 * rank + step * per_step + i);
    }
    return batch;
  };
}

}  // namespace

TEST_CASE("the gradients of an overlapping backward are averaged in both worlds") {
  Worlds worlds;
  const Arm arm = run_both(worlds, world_of(4), overlapping_iteration);
  CHECK(unfinished(arm).empty());
  for (const Seen& seen : arm.seen) {
    CHECK(numbers_of(seen) == Numbers{7.5, 5, 2.5, 0});  // layer * mean of 1, 2, 3, 4
  }
  const DeviceMemory& memory = arm.result.memory[0].at(DeviceId{0});
  CHECK(memory.peak == Bytes(layers * 3 * 4));
  CHECK(memory.held == Bytes(0));
}

TEST_CASE(
    "an activation that is offloaded to the host comes back and its memory was free between") {
  Worlds worlds;
  const Arm arm = run_both(worlds, world_of(2), offload);
  CHECK(unfinished(arm).empty());
  CHECK(numbers_of(arm.seen[0]) == Numbers{10});
  CHECK(numbers_of(arm.seen[1]) == Numbers{12});
  CHECK(arm.result.memory[0].at(DeviceId{0}).peak == Bytes(4000));
  CHECK(arm.result.memory[0].at(host_device).peak == Bytes(4000));
}

TEST_CASE("joined ranks shadow the collectives of those that still have data") {
  Worlds worlds;
  const Arm arm = run_both(worlds, world_of(3), join_with_shadows);
  CHECK(unfinished(arm).empty());
  for (const Seen& seen : arm.seen) {
    CHECK(numbers_of(seen) == Numbers{6, 6, 5, 3});  // 1 + 2 + 3, then without rank 0, then 1
  }
}

TEST_CASE("ddp trains alike in both worlds, and hangs alike on uneven data without join") {
  const Network network = small_network();
  const TrainingPlan plan = exact_plan(network);
  Worlds worlds;
  RunOptions options = world_of(2);
  options.network = &network;
  const auto ddp = [&](const DataParallelOptions& chosen, int64_t more_steps) {
    return run_both(worlds, options, [&, more_steps](Rank& rank, Seen& seen) {
      return train_with(rank, std::make_unique<DistributedDataParallel>(plan, chosen),
                        samples_of_rank(2, 2, more_steps), seen);
    });
  };
  DataParallelOptions chosen;
  chosen.bucket_cap = Bytes(64);
  const Arm even = ddp(chosen, 0);
  CHECK(unfinished(even).empty());
  CHECK(even.seen[0] == even.seen[1]);
  CHECK(unfinished(ddp(chosen, 1)) == std::vector<int32_t>{1});
  chosen.join = true;
  const Arm joined = ddp(chosen, 1);
  CHECK(unfinished(joined).empty());
  CHECK(joined.seen[0] == joined.seen[1]);
}

TEST_CASE("dp drives several devices from one rank alike in both worlds") {
  const Network network = small_network();
  const TrainingPlan plan = exact_plan(network);
  Worlds worlds;
  RunOptions options = world_of(1);
  options.network = &network;
  for (const int32_t devices : {1, 2, 4}) {
    options.devices_per_rank = devices;
    const Arm arm = run_both(worlds, options, [&](Rank& rank, Seen& seen) {
      return train_with(rank, std::make_unique<DataParallel>(plan), samples_of_rank(8, 1, 0), seen);
    });
    CHECK(unfinished(arm).empty());
    CHECK(arm.seen[0].size() == 4);  // two weights, two biases
    CHECK(arm.result.memory[0].size() >= static_cast<size_t>(devices));
  }
}

}  // namespace corner_data_parallel_test
