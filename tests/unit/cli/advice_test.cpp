// What `run` advises comes from runs of the variants, and says what those give.
#include <catch2/catch.hpp>

#include <algorithm>

#include "cli/advice.hpp"
#include "tests/unit/cli/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace {

// What `run` does with the only case of a text.
Rehearsal advised(const std::string& text) {
  Collected collected = collect(source_of_text(text));
  REQUIRE(collected.diagnostics.empty());
  RehearseRequest request;
  request.explore = false;
  request.advise = true;
  rehearse_all(collected.jobs, request, Judges::quantities, 1);
  return std::move(collected.jobs.front().result);
}

// Parameters of 64 x 64 floats, no bias: 16 KiB; two ranks.
std::string training(const std::string& memory, int batch_size) {
  return "version: 1\ncluster: {preset: dgx-a100, gpu: {memory: " + memory +
         "}}\nmodel: {layers: [{Linear: {in_features: 64, out_features: 64, bias: false}}, "
         "{Cost: {parameters: 0, forward: 1 us, backward: 1 us, activation: 1 MiB}}], "
         "input: [64], loss: MSELoss}\n"
         "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_steps: 4}\n"
         "data: {train: {samples: 4096, batch_size: " +
         std::to_string(batch_size) + "}}\n";
}

Bytes peak_with(int batch_size) {
  const Rehearsal ran = advised(training("80 GiB", batch_size));
  return ran.results.ranks.front().memory.peak;
}

}  // namespace

TEST_CASE("the largest batch size is the last whose own run fits") {
  const Rehearsal ran = advised(training("100 MiB", 4));
  REQUIRE(ran.ran());
  REQUIRE(ran.results.advice.largest_batch_size);
  const auto largest = static_cast<int>(*ran.results.advice.largest_batch_size);
  CHECK(largest > 4);
  const Bytes memory = Bytes(100 << 20);
  CHECK(peak_with(largest) <= memory);
  CHECK(peak_with(largest + 1) > memory);
}

TEST_CASE("a batch that does not fit is reported the largest that does") {
  const Rehearsal ran = advised(training("100 MiB", 4096));
  REQUIRE(ran.results.advice.largest_batch_size);
  CHECK(ran.results.advice.largest_batch_size ==
        advised(training("100 MiB", 4)).results.advice.largest_batch_size);
}

TEST_CASE("views of the buckets save the gradients' memory, and advice says so") {
  // Parameters, gradients and buckets of 64 KiB each, and few activations. Buckets that are rebuilt
  // would save nothing: the old ones live on as gradients beside the new ones, once.
  const std::string text =
      "version: 1\ncluster: {preset: dgx-a100}\n"
      "model: {layers: [{repeat: 4, layers: [{Linear: {in_features: 64, out_features: 64, bias: "
      "false}}]}], input: [64], loss: MSELoss}\n"
      "trainer: {accelerator: gpu, devices: 2, max_steps: 4, strategy: "
      "{DDPStrategy: {find_unused_parameters: true}}}\n"
      "data: {train: {samples: 64, batch_size: 1}}\n";
  const Rehearsal ran = advised(text);
  const auto& changes = ran.results.advice.changes;
  const auto views = std::find_if(changes.begin(), changes.end(), [](const auto& change) {
    return change.text == "gradient_as_bucket_view: true";
  });
  REQUIRE(views != changes.end());
  const Bytes saved = ran.results.ranks.front().memory.peak - views->peak;
  // All but one layer's gradient, which is there before it is put in. Inputs, outputs and their
  // gradients, 256 bytes each, and logged figures may be held at one of the two peaks alone.
  CHECK(saved >= Bytes(3 * 64 * 64 * 4 - 2048));
  CHECK(saved <= Bytes(3 * 64 * 64 * 4 + 2048));
}

TEST_CASE("nothing is advised where nothing is trained") {
  const Rehearsal bare = advised(
      "version: 1\ncluster: {ranks: 2, network: {bandwidth: 1 GB/s}}\nprogram: {main: "
      "[barrier]}\n");
  CHECK(bare.results.advice.tried == 0);
  CHECK_FALSE(bare.results.advice.largest_batch_size);
}
