// What `run` calls a prediction: of a whole training, on a machine that has room for it.
#include <catch2/catch.hpp>

#include "cli/render/json.hpp"
#include "cli/render/render.hpp"
#include "rehearsal/measure/measure.hpp"
#include "tests/unit/rehearsal/measure/advised.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace prediction_test {

namespace {

// Each sample holds 1 MiB of activations, and takes 1 ms forward and 1 ms backward.
std::string training(const std::string& cluster, const std::string& trainer,
                     const std::string& data, const std::string& more = "") {
  return "version: 1\ncluster: {preset: dgx-a100, nodes: 1" + cluster +
         "}\nmodel: {layers: [{Linear: {in_features: 64, out_features: 64, bias: false}}, {Cost: "
         "{parameters: 0, forward: 1 ms, backward: 1 ms, activation: 1 MiB}}], input: [64], loss: "
         "MSELoss}\ntrainer: {accelerator: gpu, " +
         trainer + "}\ndata: {" + data + "}\nverify: {numerics: false}\n" + more;
}

const std::string ddp = "devices: 2, strategy: ddp, max_steps: 4";
const std::string samples = "train: {samples: 4096, batch_size: 64}";

bool has(const Rehearsal& rehearsal, const std::string& code, Level level) {
  return std::any_of(
      rehearsal.findings.begin(), rehearsal.findings.end(),
      [&](const Finding& finding) { return finding.code == code && finding.level == level; });
}

std::string in_mib(Bytes bytes) { return std::to_string(bytes.count() >> 20) + " MiB"; }

}  // namespace

TEST_CASE("a run that is out of memory has no times") {
  const Rehearsal ran = advised(training(", gpu: {memory: 20 MiB}", ddp, samples,
                                         "expect: [total_time < 1 s, step_time < 1 s]\n"));
  CHECK(has(ran, "LS401", Level::error));
  CHECK(ran.why_no_prediction() == "this run is out of memory");
  const std::string text = render_run(ran, Style{}, false);
  CHECK(text.find("no prediction: this run is out of memory") != std::string::npos);
  CHECK(text.find("total time") == std::string::npos);
  CHECK(text.find("step time") == std::string::npos);
  Request request;
  request.command = "run";
  CHECK(json_of(ran, request).at("prediction").is_null());
  for (const Judged& one : ran.expectations) {
    INFO(one.text);
    CHECK_FALSE(one.met);
  }
}

TEST_CASE("what is read off rank 0 of a run that was stopped is what the whole measure gives") {
  const Rehearsal ran = advised(training("", ddp, samples));
  const PartialResults so_far = measure_so_far(ran.run);
  CHECK(so_far.steps > 1);
  CHECK(so_far.steps == ran.results.prediction.steps);
  CHECK(so_far.planned_steps == so_far.steps);
  CHECK(so_far.total_time == ran.results.prediction.total_time);
  CHECK(so_far.step_time == ran.results.prediction.step_time);
  CHECK(so_far.memory_peak == ran.results.ranks.front().memory.peak);
}

// Both have 64 samples for each of 2 devices in a step. In one epoch has 4 of them, in the other
// each step ends an epoch, behind which a checkpoint is written and 64 samples of validation take
// 64 ms.
TEST_CASE("a step takes the same time in whatever epoch, with what follows the epoch apart") {
  const std::string validated = ", val: {samples: 128, batch_size: 64}";
  const Rehearsal longer = advised(training("", ddp + ", num_sanity_val_steps: 0",
                                            "train: {samples: 512, "
                                            "batch_size: 64}" +
                                                validated));
  const Rehearsal shorter = advised(training("", ddp + ", num_sanity_val_steps: 0",
                                             "train: {samples: 128, "
                                             "batch_size: 64}" +
                                                 validated));
  const Prediction& expected = longer.results.prediction;
  const Prediction& found = shorter.results.prediction;
  REQUIRE(expected.steps == 4);
  REQUIRE(found.steps == 4);
  REQUIRE(expected.step_time);
  CHECK(found.step_time == expected.step_time);
  CHECK(found.samples_per_s == expected.samples_per_s);
  CHECK(found.total_time > expected.total_time + Time(3 * 64'000'000'000));
  CHECK(render_run(shorter, Style{}, false).find("more than so many steps take") !=
        std::string::npos);
}

TEST_CASE("a peak that leaves no room for the CUDA context and NCCL is a warning") {
  const Rehearsal roomy = advised(training("", ddp, samples));
  CHECK_FALSE(has(roomy, "LS401", Level::warning));
  const RankResults& rank = roomy.results.ranks.front();
  // 512 MiB of context; two connections of 12 MiB for 24 channels of an A100 with 12 NVLinks.
  CHECK(rank.reserve == Bytes((512 + 2 * 12 * 24) * int64_t{1 << 20}));
  const Bytes full = rank.memory.peak + rank.reserve;
  const auto with = [](Bytes memory) {
    return advised(training(", gpu: {memory: " + in_mib(memory) + "}", ddp, samples));
  };
  const Rehearsal tight = with(full - Bytes(4 << 20));
  CHECK(has(tight, "LS401", Level::warning));
  CHECK(exit_code_of(tight, false) == ExitCode::ok);
  CHECK_FALSE(has(with(full + Bytes(4 << 20)), "LS401", Level::warning));
  const Rehearsal gloo = advised(training("", ddp, samples, "process_group: {backend: gloo}\n"));
  CHECK(gloo.results.ranks.front().reserve == Bytes(int64_t{512} << 20));
}

TEST_CASE("a GPU of the scenario's own is not called by a preset's name") {
  const std::string own =
      ", gpu: {memory: 24 GiB, memory_bandwidth: 1 TB/s, flops: {fp32: 80 TFLOP/s}}";
  const Rehearsal ran = advised(training(own, ddp, samples));
  CHECK(ran.run.machine.name == "2 x the scenario's GPU on 1 node");
  CHECK(render_run(ran, Style{}, true).find("a100-sxm4") == std::string::npos);
  const Rehearsal larger = advised(training(", gpu: {memory: 96 GiB}", ddp, samples));
  CHECK(larger.run.machine.name == "2 x a100-sxm4-80gb with own memory on 1 node");
}

TEST_CASE("EarlyStopping by placeholder values does not end a prediction") {
  const std::string trainer =
      "devices: 2, strategy: ddp, max_epochs: 50, callbacks: [{EarlyStopping: {monitor: v}}]";
  const std::string data = "batch_size: 16, train: {samples: 64}, val: {samples: 64}";
  const auto logging = [](const std::string& value) {
    return "program: {validation_step: [{log: {name: v, value: " + value +
           ", sync_dist: true}}]}\n";
  };
  const Rehearsal ran = advised(training("", trainer, data, logging("loss")));
  CHECK(ran.results.prediction.steps == 50 * 2);
  const auto note = std::find_if(ran.problems.begin(), ran.problems.end(), [](const Problem& one) {
    return one.message.find("EarlyStopping would stop") != std::string::npos;
  });
  REQUIRE(note != ran.problems.end());
  CHECK(note->kind == Problem::Kind::note);
  CHECK(ran.run.preparation.log->ranks.front().stopped_epoch);
  // What every run knows decides as it will: no better value comes after epoch 0, patience is 3.
  const Rehearsal known = advised(training("", trainer, data, logging("epoch + 1.0")));
  CHECK(known.results.prediction.steps == 4 * 2);
  CHECK(known.problems.empty());
}

TEST_CASE("batches that the rank's own thread loads are waited for as data") {
  const auto loaded = [](const std::string& workers, int cores, int batch) {
    return advised(training(", cpu_cores: " + std::to_string(cores),
                            "devices: 2, strategy: ddp, max_steps: 6",
                            "train: {samples: 4096, batch_size: " + std::to_string(batch) +
                                ", sample_time: 30 ms, num_workers: " + workers + "}"));
  };
  const Rehearsal alone = loaded("0", 16, 8);
  const Prediction& prediction = alone.results.prediction;
  CHECK(*prediction.step_time >= 240_ms);      // 8 samples of 30 ms
  CHECK(prediction.breakdown.data >= 223_ms);  // but for 16 ms of computing
  CHECK(prediction.breakdown.host == Time{});
  const auto& changes = alone.results.advice.changes;
  const auto workers = std::find_if(changes.begin(), changes.end(), [](const auto& change) {
    return change.text == "num_workers: 8";  // as many as the rank has cores
  });
  REQUIRE(workers != changes.end());
  CHECK(workers->step_time < 40_ms);
  // 512 workers on 4 cores a rank are no faster than 4.
  const Time many = *loaded("512", 8, 64).results.prediction.step_time;
  CHECK(many == *loaded("4", 8, 64).results.prediction.step_time);
  CHECK(many >= 480_ms);  // 64 x 30 ms / 4
  CHECK(many < 484_ms);
  CHECK(*loaded("0", 1, 8).results.prediction.step_time >= 480_ms);  // two ranks on one core
}

TEST_CASE("what dp moves between its GPUs is communication") {
  const Rehearsal ran = advised(training(
      "", "devices: 4, strategy: dp, max_steps: 4", "train: {samples: 4096, batch_size: 64}",
      "versions: {lightning: \"1.9\"}\nexpect: [transfers.total == 12, transfers.copy == "
      "12, transfers.total.bytes == 98_328 B]\n"));
  // To and from each of three GPUs: 64 x 64 floats of model and gradients, a loss and its gradient.
  for (const Judged& one : ran.expectations) {
    INFO(one.text << ": " << one.actual);
    CHECK(one.met);
  }
  CHECK(ran.results.prediction.breakdown.communication > Time{});
}

TEST_CASE("Gloo between GPUs goes through host memory and TCP, and is slower than NCCL") {
  const auto step = [](const std::string& backend) {
    return *advised(
                "version: 1\ncluster: {preset: dgx-h100, nodes: 1}\nmodel: {preset: resnet50}\n"
                "trainer: {accelerator: gpu, devices: 8, strategy: ddp, max_steps: 4}\n"
                "data: {train: {samples: 4096, batch_size: 2}}\nprocess_group: {backend: " +
                backend + "}\n")
                .results.prediction.step_time;
  };
  // 25.6 M fp32 gradients: 2 x 7/8 of 102 MB at 4 GB/s are 44.7 ms, however they overlap with
  // 3 ms of computing.
  CHECK(step("gloo") > 44_ms);
  CHECK(step("nccl") < 10_ms);
}

}  // namespace prediction_test
