// What a thread of the strategy sends counts for the step in which it does.
#include <catch2/catch.hpp>

#include "tests/unit/rehearsal/rehearsed.hpp"

namespace lockstep::cli::transfers_of_lanes_test {
namespace {

int64_t reduced_bytes_per_step(int steps) {
  const std::string text =
      "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\nmodel: {preset: mlp}\n"
      "versions: {lightning: \"1.6\"}\ndata: {train: {samples: 640, batch_size: 8}}\n"
      "trainer: {accelerator: gpu, devices: 2, strategy: horovod, max_steps: " +
      std::to_string(steps) + "}\n";
  const std::vector<Job> jobs = test::rehearsed(text);
  REQUIRE(jobs.front().result.ran());
  int64_t bytes = 0;
  for (const TransferCount& one : jobs.front().result.results.ranks.front().transfers) {
    bytes += one.kind == OpKind::all_reduce ? one.bytes : 0;
  }
  return bytes;
}

TEST_CASE("transfers of a step are those of one step, also from a thread beside the main one") {
  // 2,242 gradients of 4 bytes, and at most 64 bytes in which ranks say what is ready.
  constexpr int64_t gradients = 2242 * 4;
  for (const int steps : {4, 12}) {
    CAPTURE(steps);
    const int64_t bytes = reduced_bytes_per_step(steps);
    CHECK(bytes >= gradients);
    CHECK(bytes <= gradients + 64);
  }
}

}  // namespace
}  // namespace lockstep::cli::transfers_of_lanes_test
