#include "rehearsal/measure/held_tensors.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace held_tensors_test {

namespace {

// Two ranks, one layer of 4 x 2 weights, batches of 3 samples, values computed.
OneRun trained() {
  auto jobs = rehearsed(
      "version: 1\ncluster: {preset: cpu}\nmodel: {layers: [{Linear: {in_features: 4, "
      "out_features: "
      "2, bias: false}}], input: [4], loss: MSELoss}\n"
      "trainer: {accelerator: cpu, devices: 2, strategy: ddp, max_steps: 2, num_sanity_val_steps: "
      "0, "
      "limit_val_batches: 0}\ndata: {batch_size: 3, train: {samples: 12}}\n");
  return std::move(jobs.front().result.run);
}

Bytes accounted(const OneRun& run, size_t rank) {
  Bytes all{};
  for (const auto& [device, memory] : run.result.memory[rank]) {
    all += memory.peak;
  }
  return all;
}

}  // namespace

TEST_CASE("tensors may hold what is accounted, what graphs save, and one kernel's copies") {
  OneRun run = trained();
  REQUIRE(run.preparation.options.numerics);
  CHECK_FALSE(held_tensors(run));  // nobody counted
  const Bytes graphs = run.preparation.network->activation_bytes(DType::fp32) * 3;
  const Bytes kernel(8 * (3 * (4 + 2) + 4 * 8));  // a batch, and four arrays of weights
  run.result.tensor_peak = {accounted(run, 0), accounted(run, 1) + graphs + kernel};
  const auto held = held_tensors(run);
  REQUIRE(held);
  CHECK(held->rank == 1);
  CHECK(held->accounted == accounted(run, 1));
  CHECK(held->allowance.count() == (graphs + kernel).count());
  CHECK(held->explained());
  *run.result.tensor_peak[1] += Bytes(1);
  CHECK_FALSE(held_tensors(run)->explained());
}

}  // namespace held_tensors_test
