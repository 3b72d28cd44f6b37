// What the host pays to hand an operation to the real world on this CPU. Only `submit` is timed:
// the operations run on threads of their own, and are waited for between the batches.
#include <benchmark/benchmark.h>

#include <array>
#include <chrono>
#include <vector>

#include "backend/gloo/world.hpp"

using namespace lockstep;

namespace {

constexpr size_t batch = 256;  // fits the launch queue, so that nothing holds the host back
constexpr int batches = 20;    // a run makes its threads and connections once
constexpr int64_t elements = 16;

using Clock = std::chrono::steady_clock;
using Submit = Ticket (*)(Rank&, const Slice&);

/// What rank 0 measured.
struct Told {
  double seconds = 0;
  double value = 0;
};

Program timed_batches(Rank& rank, Submit submit, Told& told) {
  const Slice data = rank.allocate(Purpose::metric, DType::fp32, elements);
  Values ones(DType::fp32, elements);
  for (int64_t index = 0; index < elements; ++index) {
    ones.set(index, 1);
  }
  rank.write(data, ones);
  std::vector<Ticket> tickets(batch);
  Clock::duration taken{};
  for (int turn = 0; turn < batches; ++turn) {
    const Clock::time_point begin = Clock::now();
    for (Ticket& ticket : tickets) {
      ticket = submit(rank, data);
    }
    taken += Clock::now() - begin;
    co_await rank.settle_all(tickets);
  }
  if (rank.id() == 0) {
    told = {std::chrono::duration<double>(taken).count(), rank.read(data).number(elements - 1)};
  }
}

Ticket all_reduce(Rank& rank, const Slice& data) {
  return rank.all_reduce(world_group, data, Reduction::max);
}

Ticket kernel(Rank& rank, const Slice& data) {
  constexpr std::array<double, 1> one{1};
  return rank.compute(
      {.kernel = Kernel::scale, .reads = {&data, 1}, .writes = {&data, 1}, .scalars = one});
}

// With a journal, as `exec` has one.
void submit(benchmark::State& state, Submit operation) {
  RunOptions options;
  options.world_size = static_cast<int32_t>(state.range(0));
  for (auto iteration : state) {
    Told told;
    const RunResult result =
        backend::run(options, {}, [&](Rank& rank) { return timed_batches(rank, operation, told); });
    if (result.hung || told.value != 1) {
      state.SkipWithError("the operations did not leave what they must");
      break;
    }
    state.SetIterationTime(told.seconds / (static_cast<double>(batch) * batches));
  }
}

}  // namespace

BENCHMARK_CAPTURE(submit, kernel, kernel)->Arg(1)->UseManualTime()->Iterations(5);
BENCHMARK_CAPTURE(submit, all_reduce, all_reduce)->Arg(2)->UseManualTime()->Iterations(5);
