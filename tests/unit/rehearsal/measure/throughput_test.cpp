// Throughput counts the samples that the steps really take.
#include <catch2/catch.hpp>

#include "tests/unit/rehearsal/measure/advised.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace throughput_test {

namespace {

// 1 ms forward and 1 ms backward per sample; no parameters but those of one Linear.
std::string training(const std::string& data, const std::string& trainer,
                     const std::string& more = "") {
  return "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\n"
         "model: {layers: [{Linear: {in_features: 4, out_features: 4}}, {Cost: {parameters: 0, "
         "forward: 1 ms, backward: 1 ms, activation: 0 B}}], input: [4], loss: MSELoss}\n"
         "trainer: {accelerator: gpu, " +
         trainer + "}\ndata: {train: {" + data + "}}\nverify: {numerics: false}\n" + more;
}

void check_rate(const Results& results, int64_t samples) {
  REQUIRE(results.effective_batch_size);
  CHECK(*results.effective_batch_size == samples);
  CHECK(*results.prediction.samples_per_s ==
        Approx(static_cast<double>(samples) / seconds(*results.prediction.step_time)));
}

}  // namespace

TEST_CASE("an epoch that ends a window of accumulation gives the step that window's samples") {
  // One batch of 64 an epoch: Lightning steps after it, 8 batches are never accumulated.
  const Rehearsal ran = advised(
      "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\nmodel: {preset: resnet50}\n"
      "trainer: {accelerator: gpu, devices: 1, max_epochs: 3, accumulate_grad_batches: 8}\n"
      "data: {train: {samples: 64, batch_size: 64}}\n");
  check_rate(ran.results, 64);
  REQUIRE(ran.results.prediction.mfu);
  // 64 samples of 3 x 2 x 4.09 GFLOP in the step, of 19.5 TFLOP/s (He et al. 2015: 3.8 GMAC for
  // v1; torchvision's v1.5 has 4.09)
  const double step_s = seconds(*ran.results.prediction.step_time);
  CHECK(*ran.results.prediction.mfu ==
        Approx(64 * 3 * 2 * 4.09e9 / (19.5e12 * step_s)).epsilon(0.03));
}

TEST_CASE("where windows are cut now and then, the step told is a full one") {
  // 11 batches per epoch: windows of 8 and 3.
  const Rehearsal ran = advised(training("samples: 88, batch_size: 4",
                                         "devices: 2, strategy: ddp, max_epochs: 4, "
                                         "accumulate_grad_batches: 8"));
  check_rate(ran.results, 8 * 4 * 2);
  CHECK(*ran.results.prediction.step_time >= 64_ms);  // 8 batches of 4 samples
  CHECK(*ran.results.prediction.step_time < 66_ms);
}

TEST_CASE("a short last batch is not the step that is reported") {
  const Rehearsal ran =
      advised(training("samples: 100, batch_size: 64", "devices: 1, max_epochs: 3"));
  check_rate(ran.results, 64);
}

TEST_CASE("limits on batches cut a window too") {
  const Rehearsal ran = advised(
      training("samples: 4096, batch_size: 4",
               "devices: 1, max_epochs: 3, accumulate_grad_batches: 8, limit_train_batches: 2"));
  check_rate(ran.results, 8);
}

TEST_CASE("two optimizers that step on one batch do not take its samples twice") {
  const std::string module =
      "{layers: [{Linear: {in_features: 4, out_features: 4}}, {Cost: {parameters: 0, forward: 1 "
      "ms, backward: 1 ms, activation: 0 B}}], input: [4], loss: MSELoss}";
  const Rehearsal ran = advised(
      "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\nmodel: {modules: {g: " + module +
      ", d: " + module +
      "}}\noptimizer: [{SGD: {lr: 0.1, name: a, module: g}}, {SGD: {lr: 0.1, name: b, module: "
      "d}}]\ntrainer: {accelerator: gpu, devices: 1, max_epochs: 1}\n"
      "data: {train: {samples: 64, batch_size: 8}}\nverify: {numerics: false}\n"
      "program:\n  automatic_optimization: false\n  training_step:\n"
      "    - forward: {module: g}\n    - {backward: loss}\n    - {optimizer_step: a}\n"
      "    - forward: {module: d}\n    - {backward: loss}\n    - {optimizer_step: b}\n");
  REQUIRE(ran.results.prediction.samples_per_s);
  // 8 samples in two steps of 16 ms, and their launches.
  CHECK(*ran.results.prediction.samples_per_s == Approx(8 / 32e-3).epsilon(0.1));
}

TEST_CASE("workers that do not wait for each other count at their own pace") {
  // Two workers and a server: 4 samples take 8 ms, on the slow one 80 ms, whichever that is.
  for (const char* slow : {"0", "1"}) {
    const Rehearsal ran = advised(training(
        "samples: 320, batch_size: 4",
        "devices: 3, max_epochs: 1, num_sanity_val_steps: 0, enable_checkpointing: false, "
        "strategy: {ParameterServerStrategy: {mode: async}}",
        "versions: {lightning: \"2.4\"}\nfaults: [{straggler: {rank: " + std::string(slow) +
            ", slowdown: 10}}]\n"));
    INFO("slow: rank " << slow);
    CHECK(*ran.results.prediction.samples_per_s == Approx(4 / 0.008 + 4 / 0.08).epsilon(0.01));
  }
}

}  // namespace throughput_test
