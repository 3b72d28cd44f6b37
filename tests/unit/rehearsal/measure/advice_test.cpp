// What `run` advises comes from runs of the variants, and says what those give.
#include <catch2/catch.hpp>

#include <algorithm>

#include "rehearsal/measure/advice.hpp"
#include "tests/unit/rehearsal/measure/advised.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace advice_test {

namespace {

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
  const Rehearsal ran = advised(training("1200 MiB", 4));
  REQUIRE(ran.ran());
  REQUIRE(ran.results.advice.largest_batch_size);
  const auto largest = static_cast<int>(*ran.results.advice.largest_batch_size);
  CHECK(largest > 4);
  const Bytes memory = Bytes(1200 << 20) - ran.results.ranks.front().reserve;
  CHECK(peak_with(largest) <= memory);
  CHECK(peak_with(largest + 1) > memory);
}

TEST_CASE("a batch that does not fit reports the largest that does") {
  const Rehearsal ran = advised(training("1200 MiB", 4096));
  REQUIRE(ran.results.advice.largest_batch_size);
  CHECK(ran.results.advice.largest_batch_size ==
        advised(training("1200 MiB", 4)).results.advice.largest_batch_size);
}

TEST_CASE("samples that are written down do not end the search for the largest batch") {
  const auto largest = [](const std::string& train) {
    const Rehearsal ran = advised(
        "version: 1\ncluster: {preset: dgx-a100, gpu: {memory: 1200 MiB}}\n"
        "model: {layers: [{Linear: [2, 1]}, {Cost: {parameters: 0, forward: 1 us, backward: 1 us, "
        "activation: 1 MiB}}], input: [2], loss: MSELoss}\n"
        "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1}\n"
        "data: {" +
        train + "}\n");
    INFO(ran.results.advice.why_no_batch_size);
    REQUIRE(ran.results.advice.largest_batch_size);
    return *ran.results.advice.largest_batch_size;
  };
  const std::string rows = "inputs: [[1, 2], [3, 4]], targets: [[1], [2]]";
  const int64_t drawn = largest("train: {samples: 2, batch_size: 1}");
  CHECK(drawn > 1);
  CHECK(largest("train: {" + rows + ", batch_size: 1}") == drawn);
  CHECK(largest(rows + ", batch_size: 1") == drawn);
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

TEST_CASE("the scenario itself is a row, measured as its variants") {
  const Rehearsal ran = advised(training("80 GiB", 64));
  const Advice& advice = ran.results.advice;
  REQUIRE(advice.base);
  CHECK(advice.base->text == "as it is");
  CHECK(advice.steps == 3);
  const auto doubled = std::find_if(advice.changes.begin(), advice.changes.end(),
                                    [](const auto& one) { return one.text == "batch_size: 128"; });
  REQUIRE(doubled != advice.changes.end());
  // 64 samples more hold 1 MiB of activations each.
  CHECK(doubled->peak - advice.base->peak >= Bytes(64 << 20));
  // A step takes the same 2 us of kernels: nearly twice the samples in its time.
  CHECK(doubled->samples_per_s > advice.base->samples_per_s);
}

TEST_CASE("what decides by metrics of a validation does not fail a run without one") {
  for (const char* monitor : {"trainer: {callbacks: [{EarlyStopping: {monitor: val_loss}}]}",
                              "trainer: {callbacks: [{ModelCheckpoint: {monitor: val_loss}}]}",
                              "lr_scheduler: {ReduceLROnPlateau: {monitor: val_loss}}"}) {
    INFO(monitor);
    std::string text = training("8 GiB", 64);
    const std::string own(monitor);
    text.replace(text.find("4096"), 4, "256");  // two steps per epoch
    const size_t at = text.find("max_steps: 4}");
    if (own.starts_with("trainer: {")) {
      const size_t begin = own.find('{') + 1;
      text.replace(at, 13, "max_epochs: 2, " + own.substr(begin));
    } else {
      text += own + "\n";
    }
    text += "program: {validation_step: [{log: {name: val_loss, value: loss, sync_dist: true}}]}\n";
    const Advice advice = advised(text + "verify: {numerics: false}\n").results.advice;
    CHECK(advice.why_no_batch_size.empty());
    REQUIRE(advice.largest_batch_size);
    CHECK(*advice.largest_batch_size > 64);
    CHECK(advice.base);
  }
}

// The runs of a search end at the first rank that is out of memory, while its launches are under
// way.
TEST_CASE("a batch that is too large for a rank that is ahead of its device does not hang") {
  const Rehearsal ran = advised(
      "version: 1\ncluster: {preset: dgx-h100, nodes: 2}\n"
      "model: {preset: gpt3-6.7b, activation_checkpointing: full}\n"
      "optimizer: {AdamW: {lr: 1e-4}}\ndata: {train: {samples: 64, batch_size: 1}}\n"
      "trainer: {accelerator: gpu, devices: 8, num_nodes: 2, precision: bf16-mixed, max_steps: 3, "
      "num_sanity_val_steps: 0, limit_val_batches: 0, strategy: deepspeed_stage_3}\n");
  CHECK(ran.results.advice.why_no_batch_size.empty());
  CHECK(ran.results.advice.largest_batch_size.value_or(0) > 1);
}

TEST_CASE("a short run that raises says so, and is not out of memory") {
  const Rehearsal ran = advised(training("80 GiB", 64) +
                                "program: {training_step: [{if: batch_size > 64, then: [{raise: "
                                "no such shape}]}, forward]}\n");
  const Advice& advice = ran.results.advice;
  CHECK_FALSE(advice.largest_batch_size);
  CHECK(advice.why_no_batch_size.find("with batch_size 128 raises") != std::string::npos);
  CHECK(advice.why_no_batch_size.find("no such shape") != std::string::npos);
  CHECK(advice.base);
}

TEST_CASE("nothing is advised where nothing is trained") {
  const Rehearsal bare = advised(
      "version: 1\ncluster: {ranks: 2, network: {bandwidth: 1 GB/s}}\nprogram: {main: "
      "[barrier]}\n");
  CHECK(bare.results.advice.tried == 0);
  CHECK_FALSE(bare.results.advice.largest_batch_size);
}

}  // namespace advice_test
