// Why a training is not compared with one device, where an exception ends one of them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace one_device_raises_test {

namespace {

void check_left_out(const std::string& program, const std::string& why) {
  const std::vector<Job> jobs = rehearsed(
      "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\n"
      "model: {input: [8], layers: [{Linear: [8, 4]}], loss: MSELoss}\n"
      "data: {train: {samples: 32, batch_size: 4}}\n"
      "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1, "
      "num_sanity_val_steps: 0, limit_val_batches: 0}\nprogram:\n" +
      program);
  const std::vector<std::string>& all = jobs.front().result.coverage.not_looked_at;
  const bool found = std::ranges::any_of(
      all, [&](const std::string& each) { return each.find(why) != std::string::npos; });
  INFO(fmt::format("{}", fmt::join(all, "; ")));
  CHECK(found);
}

}  // namespace

TEST_CASE("an exception on one device is named with its place") {
  // One device gathers one part: the second does not exist.
  check_left_out(
      "  on_train_epoch_end:\n    - let: {x: \"full(2, 1.0)\"}\n"
      "    - all_gather: {tensor: x, as: all}\n"
      "    - log: {name: second, value: \"sum(all[1])\"}\n",
      "one device (there `log` in on_train_epoch_end (scenario.yaml:10:7) raises '");
}

TEST_CASE("an exception on the ranks is why they are not compared with one device") {
  check_left_out(
      "  training_step:\n    - forward\n    - if: world_size == 2\n"
      "      then: [{raise: two}]\n",
      "one device (an exception ends the training of the ranks)");
}

}  // namespace one_device_raises_test
