// What a rank's GPU does over time, also where steps were left out.
#include "cli/render/over_time/utilization.hpp"

#include <fmt/format.h>

#include <utility>

#include "cli/render/over_time/memory_over_time.hpp"
#include "cli/render/over_time/moment_edges.hpp"
#include "cli/render/over_time/step_times.hpp"
#include "tests/unit/rehearsal/measure/advised.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace utilization_test {

namespace {

// A sample takes 1 ms forward and 1 ms backward; parameters but those of one Linear take nothing.
std::string training(const std::string& data, const std::string& trainer,
                     const std::string& more = "") {
  return "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\n"
         "model: {layers: [{Linear: {in_features: 4, out_features: 4}}, {Cost: {parameters: 0, "
         "forward: 1 ms, backward: 1 ms, activation: 1 MiB}}], input: [4], loss: MSELoss}\n"
         "trainer: {accelerator: gpu, num_sanity_val_steps: 0, " +
         trainer + "}\ndata: {" + data + "}\n" + more;
}

// Epochs with validations, of which most steps are left out.
const std::string of_epochs =
    training("train: {batches: 60, batch_size: 2}, val: {batches: 12, batch_size: 2}",
             "devices: 2, strategy: ddp, max_epochs: 6", "program: {validation_step: [forward]}\n");
const std::string folds = "verify: {numerics: false}\n";
const std::string every_step = "verify: {numerics: false, all_steps: true}\n";

Moments moments_of(const Rehearsal& ran) { return Moments(ran.run.result, 0, {}); }

StepTimes step_times_of(const Rehearsal& ran) {
  const Moments moments = moments_of(ran);
  return StepTimes(ran.run, moments.stretches(), moments.evaluations());
}

}  // namespace

TEST_CASE("a GPU that waits for batches works as long as its kernels run") {
  // The rank's thread loads 2 samples in 12 ms, while the 4 ms of kernels of the batch before run:
  // a third of the time.
  const Rehearsal ran = advised(training("train: {batches: 20, batch_size: 2, sample_time: 6 ms}",
                                         "devices: 1, max_epochs: 1", folds));
  const std::optional<Utilization> seen = utilization_of(ran, 0, 10);
  REQUIRE(seen);
  CHECK(seen->period == 50_ms);
  // 20 x 12 ms, and the last batch.
  CHECK(seen->working == Approx(80.0 / 244).epsilon(0.01));
  CHECK(seen->kernel_ran == Approx(seen->working));
  const MomentTimes all = moments_of(ran).between({}, ran.run.result.total_time);
  CHECK(seconds(all[Moment::data]) == Approx(20 * 0.008 + 0.004).epsilon(0.01));
  // In the first 50 ms nothing runs for 12 ms: 14 ms of kernels are less than 90 % of a third.
  REQUIRE(seen->dips.size() == 1);
  CHECK(seen->dips.front().label() == "waiting for data");
  CHECK(seen->dips.front().end == 50_ms);
}

TEST_CASE("kinds of moments add up to the time") {
  const Rehearsal ran = advised(of_epochs + folds);
  const Moments moments = moments_of(ran);
  const Time total = ran.run.result.total_time;
  for (const auto& [begin, end] :
       {std::pair(Time{}, total), {total / 3, total / 2}, {total / 7, total / 6}}) {
    const MomentTimes times = moments.between(begin, end);
    Time sum{};
    for (const Time part : times.of) {
      sum += part;
    }
    CHECK(sum == end - begin);
  }
}

TEST_CASE("what was left out is seen as if it had been simulated") {
  const Rehearsal folded = advised(of_epochs + folds);
  const Rehearsal whole = advised(of_epochs + every_step);
  REQUIRE(folded.results.prediction.simulated_steps < folded.results.prediction.steps / 2);
  REQUIRE(whole.results.prediction.simulated_steps == whole.results.prediction.steps);
  const Time total = whole.run.result.total_time;
  REQUIRE(folded.run.result.total_time == total);
  const Moments of_folded = moments_of(folded);
  const Moments of_whole = moments_of(whole);
  constexpr int windows = 97;
  const double allowed_s = seconds(total) / windows * 0.002;
  for (int window = 0; window < windows; ++window) {
    const Time begin = total * window / windows;
    const Time end = total * (window + 1) / windows;
    const MomentTimes left = of_folded.between(begin, end);
    const MomentTimes right = of_whole.between(begin, end);
    INFO(window);
    for (size_t kind = 0; kind < moment_count; ++kind) {
      CHECK(seconds(left.of[kind]) == Approx(seconds(right.of[kind])).margin(allowed_s));
    }
    CHECK(seconds(left.evaluating) == Approx(seconds(right.evaluating)).margin(allowed_s));
  }
  const MemoryOverTime memory_of_folded(*folded.run.result.journal, 0, of_folded.stretches());
  const MemoryOverTime memory_of_whole(*whole.run.result.journal, 0, {});
  int differ = 0;
  for (int window = 0; window < windows; ++window) {
    const Time at = total * window / windows;
    differ += memory_of_folded.at(at) == memory_of_whole.at(at) ? 0 : 1;
  }
  CHECK(differ == 0);
}

TEST_CASE(
    "which ranks wait meanwhile is asked of the same ranks, whether others run for them or not") {
  // Shards of 643 elements on 48 ranks are of more kinds than ranks are looked at.
  const std::string sharded =
      "version: 1\ncluster: {preset: dgx-a100, nodes: 24, gpu: {memory: 24 KiB}}\n"
      "optimizer: {Adam: {lr: 0.01}}\ndata: {train: {samples: 96, batch_size: 1}}\n"
      "model: {input: [6], layers: [{Linear: [6, 64]}, ReLU, {Linear: [64, 3]}], loss: MSELoss}\n"
      "trainer: {accelerator: gpu, devices: 2, num_nodes: 24, max_epochs: 1, max_steps: 5, "
      "strategy: {FSDPStrategy: {sharding_strategy: SHARD_GRAD_OP, use_orig_params: true, "
      "cpu_offload: true, sync_module_states: false}}, num_sanity_val_steps: 0}\n";
  const auto shares_of = [](const Rehearsal& ran) {
    const auto seen = utilization_of(ran.run, ran.results.prediction, 0, 100);
    REQUIRE(seen);
    std::vector<std::array<double, moment_count>> shares;
    for (const UtilizationSample& sample : seen->samples) {
      shares.push_back(sample.share);
    }
    return shares;
  };
  const Rehearsal folded = advised(sharded + folds);
  const Rehearsal whole = advised(sharded + "verify: {numerics: false, all_ranks: true}\n");
  REQUIRE(folded.run.preparation.options.classes != nullptr);
  REQUIRE(whole.run.preparation.options.classes == nullptr);
  CHECK(shares_of(folded) == shares_of(whole));
}

TEST_CASE("every step has its time and its samples, also one that was left out") {
  const Rehearsal folded = advised(of_epochs + folds);
  const Rehearsal whole = advised(of_epochs + every_step);
  const StepTimes of_folded = step_times_of(folded);
  const StepTimes of_whole = step_times_of(whole);
  REQUIRE(of_whole.steps() == 360);
  REQUIRE(of_folded.steps() == 360);
  int validations = 0;
  for (int64_t step = 0; step < 360; ++step) {
    INFO(step);
    CHECK(of_folded.finish(step) == of_whole.finish(step));
    CHECK(of_folded.samples(step) == 4);
    CHECK(of_folded.evaluation_end(step) == of_whole.evaluation_end(step));
    validations += of_whole.evaluation_end(step) ? 1 : 0;
  }
  CHECK(validations == 6);
  CHECK(of_whole.ended_at(Time{}) == 0);
  CHECK(of_whole.ended_at(of_whole.finish(99)) == 100);
  CHECK(of_whole.ended_at(whole.run.result.total_time) == 360);
}

// Four batches of 2 samples take 8 ms. Windows of three batches and validations behind every fourth
// begin and end together only at the end of an epoch of 12.
TEST_CASE("a validation within a window of accumulated batches is no training") {
  for (const std::string& verify : {every_step, folds}) {
    const Rehearsal ran =
        advised(training("train: {batches: 12, batch_size: 2}, val: {batches: 4, batch_size: 2}",
                         "devices: 2, strategy: ddp, max_epochs: 2, accumulate_grad_batches: 3, "
                         "val_check_interval: 4",
                         "program: {validation_step: [forward]}\n" + verify));
    const auto passes = evaluations_of(*ran.run.result.journal, 0);
    REQUIRE(passes.size() == 6);
    for (const auto& [begin, end] : passes) {
      CHECK(seconds(end - begin) == Approx(0.008).epsilon(0.05));
    }
  }
}

// Ranks mark their loops where there are several: of 14 batches in an epoch, the last two belong to
// a step that ends behind the validation. One alone knows a validation between two steps.
TEST_CASE("under manual optimization each validation is a pass of its own") {
  for (const auto& [devices, batches] :
       {std::pair("2, strategy: ddp", "14"), {"2, strategy: ddp", "15"}, {"1", "15"}}) {
    for (const std::string& verify : {every_step, folds}) {
      const Rehearsal ran = advised(
          training(fmt::format("train: {{batches: {}, batch_size: 2}}, val: {{batches: 4, "
                               "batch_size: 2}}",
                               batches),
                   fmt::format("devices: {}, max_epochs: 6", devices),
                   "program: {automatic_optimization: false, training_step: [forward, "
                   "backward, {if: batch_idx % 3 == 2, then: [optimizer_step, zero_grad]}], "
                   "validation_step: [forward]}\n" +
                       verify));
      INFO(devices << ", " << batches << " batches, " << verify);
      const auto passes = evaluations_of(*ran.run.result.journal, 0);
      REQUIRE_FALSE(passes.empty());
      CHECK((passes.size() == 6 || verify == folds));  // of left-out stretches two
      CHECK(passes.size() <= 6);
      for (const auto& [begin, end] : passes) {
        CHECK(seconds(end - begin) == Approx(0.008).epsilon(0.05));
      }
    }
  }
}

TEST_CASE("a validation that waits for its batches is a dip with that label") {
  // 20 steps of 8 ms; 10 batches of validation take 4 ms each and 40 ms to load.
  const Rehearsal ran = advised(
      training("train: {batches: 20, batch_size: 4}, val: {batches: 10, batch_size: 4, "
               "sample_time: 10 ms}",
               "devices: 1, max_epochs: 2", "program: {validation_step: [forward]}\n" + folds));
  const std::optional<Utilization> seen = utilization_of(ran, 0, 60);
  REQUIRE(seen);
  CHECK(seen->usual > 0.95);
  REQUIRE(seen->dips.size() == 2);
  for (const UtilizationDip& dip : seen->dips) {
    CHECK(dip.label() == "validation, waiting for data");
    CHECK(dip.working < 0.2);
    CHECK(seconds(dip.end - dip.begin) == Approx(0.44).epsilon(0.1));
  }
}

TEST_CASE("a rank that works alone, and one that is waited for") {
  // Rank 1 sleeps 30 ms in every third batch; rank 0 waits for it in the next exchange.
  const std::string late =
      training("train: {batches: 12, batch_size: 2}", "devices: 2, strategy: ddp, max_epochs: 1",
               "program: {on_train_batch_end: [{if: rank == 1, then: [{host: 30 ms}]}]}\n" + folds);
  const Rehearsal ran = advised(late);
  const std::optional<Utilization> waits = utilization_of(ran, 0, 20);
  const std::optional<Utilization> works = utilization_of(ran, 1, 20);
  REQUIRE(waits);
  REQUIRE(works);
  const auto share = [](const Utilization& of, Moment moment) {
    double sum = 0;
    for (const UtilizationSample& sample : of.samples) {
      sum += sample.share[static_cast<size_t>(moment)];
    }
    return sum / static_cast<double>(of.samples.size());
  };
  CHECK(share(*waits, Moment::other_ranks) > 0.5);
  CHECK(share(*works, Moment::alone) > 0.5);
  // Rank 1 submits some time behind rank 0, and leaves out the same steps later.
  const Rehearsal whole = advised(late.substr(0, late.size() - folds.size()) + every_step);
  for (const int32_t rank : {0, 1}) {
    const std::optional<Utilization> left_out = utilization_of(ran, rank, 20);
    const std::optional<Utilization> simulated = utilization_of(whole, rank, 20);
    REQUIRE(simulated);
    for (const Moment moment : {Moment::alone, Moment::other_ranks, Moment::working}) {
      INFO(rank << " " << phrase_of(moment));
      CHECK(share(*left_out, moment) == Approx(share(*simulated, moment)));
    }
  }
  // NCCL's kernel runs while it waits, and nvidia-smi counts it.
  CHECK(waits->kernel_ran > 0.9);
  CHECK(waits->working < 0.4);
}

TEST_CASE("periods are 1, 2 or 5 of a power of ten") {
  CHECK(round_period(Time(1)) == Time(1));
  CHECK(round_period(Time(3)) == Time(5));
  CHECK(round_period(11_ms) == 20_ms);
  CHECK(round_period(20_ms) == 20_ms);
  CHECK(round_period(51_us) == 100_us);
}

TEST_CASE("without GPUs, without a trainer or without a prediction nothing is shown") {
  CHECK_FALSE(utilization_of(advised(bare_text(2, "    - barrier\n")), 0, 10));
  const Rehearsal on_cpu = advised(
      "version: 1\ncluster: {preset: cpu}\nmodel: {input: [4], layers: [{Linear: [4, 2]}]}\n"
      "trainer: {accelerator: cpu, devices: 1, max_steps: 2}\n"
      "data: {train: {samples: 8, batch_size: 2}}\nverify: {numerics: false}\n");
  CHECK_FALSE(utilization_of(on_cpu, 0, 10));
}

}  // namespace utilization_test
