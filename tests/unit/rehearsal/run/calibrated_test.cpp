// A scenario with a calibration that is written by hand, so that its times can be said beforehand.
#include "rehearsal/run/calibrated.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>

#include "cli/render/json.hpp"
#include "cli/render/render.hpp"
#include "io/calibration/calibration_file.hpp"
#include "rehearsal/launch/temporary_folder.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace calibrated_test {

namespace {

MeasuredTime exactly(Time time) { return {time, time, time}; }

/// All kernels of this kind take 10 us, whatever their size.
KernelCurve constant(Kernel kernel, std::optional<LayerKind> layer) {
  KernelCurve curve{kernel, layer, DType::fp32, 1, {}};
  for (const int64_t size : {1, 1000, 1'000'000}) {
    curve.points.push_back({Flops(0), Bytes(size), exactly(10_us)});
  }
  return curve;
}

Calibration by_hand() {
  Calibration calibration;
  calibration.origin.backend = "gloo";
  calibration.origin.device = "a CPU";
  calibration.origin.preset = "cpu";
  calibration.origin.date = "2026-11-22";
  calibration.kernels = {constant(Kernel::layer_forward, LayerKind::linear),
                         constant(Kernel::layer_backward, LayerKind::linear),
                         constant(Kernel::loss_forward, LayerKind::mse_loss),
                         constant(Kernel::loss_backward, LayerKind::mse_loss),
                         constant(Kernel::sgd_step, std::nullopt)};
  calibration.transfers = {{OpKind::copy, 1, {{Bytes(8), exactly(7_us)}}}};
  calibration.launch_overheads = {{1, exactly(1_ns)}};
  calibration.held_out = {{HeldOut::Part::compute, "a", 5_us, 10_us},
                          {HeldOut::Part::compute, "b", 20_us, 10_us}};
  return calibration;
}

/// One Linear, trained on one device of the cluster.
std::string training(const std::string& cluster, const std::string& more = "",
                     const std::string& layers = "{Linear: [4, 2]}") {
  return "version: 1\ncluster: " + cluster +
         "\ntrainer: {accelerator: cpu, devices: 1, max_steps: 4, num_sanity_val_steps: 0, "
         "limit_val_batches: 0}\ndata: {train: {samples: 32, batch_size: 8}}\n"
         "optimizer: {SGD: {lr: 0.1}}\nmodel: {input: [4], loss: MSELoss, layers: [" +
         layers + "]}\n" + more;
}

/// A file that goes away with the test.
struct TemporaryFile {
  TemporaryFolder folder{};
  std::string path;
  explicit TemporaryFile(const std::string& text) : path(folder.path() + "/machine.json") {
    std::ofstream(path) << text;
  }
  explicit TemporaryFile(const Calibration& calibration = by_hand())
      : TemporaryFile(text_of(calibration)) {}
  std::string cluster(const std::string& gpu = "cpu") const {
    return "{gpu: " + gpu + ", preset: cpu, calibration: " + path + "}";
  }
};

Rehearsal rehearsal_of(const std::string& text) {
  return std::move(rehearsed(text, Judges::quantities).front().result);
}

/// The only problem that keeps a text from running.
Problem problem_of(const std::string& text) {
  for (const Problem& problem : rehearsal_of(text).problems) {
    if (problem.kind != Problem::Kind::note) {
      return problem;
    }
  }
  FAIL("nothing is wrong with it");
  return {};
}

}  // namespace

TEST_CASE("a step takes what its measured kernels and copies take") {
  const TemporaryFile file;
  const Rehearsal rehearsal = rehearsal_of(training(file.cluster()));
  REQUIRE(rehearsal.ran());
  const Prediction& prediction = rehearsal.results.prediction;
  // Input and target come by a copy each; forward, loss, its gradient, backward, and one update of
  // the weight and one of the bias.
  CHECK(prediction.step_time == 2 * 7_us + 6 * 10_us);
  // Kernels by 0.5 and 2; nothing was held out for communication, and copies are of it.
  CHECK(prediction.step_time_low == 2 * 7_us + 6 * 5_us);
  CHECK(prediction.step_time_high == 2 * 7_us + 6 * 20_us);
  CHECK(prediction.total_time_low < prediction.total_time);
  CHECK(prediction.total_time_high > prediction.total_time);
}

TEST_CASE("a calibrated run says so, with its range, and expectations judge the range") {
  const TemporaryFile file;
  const std::vector<Job> jobs =
      rehearsed(training(file.cluster(),
                         "expect: [step_time.high < 135 us, step_time.low == 44 us, "
                         "total_time.low > 0 s, step_time.high < 100 us]\n"),
                Judges::quantities);
  const Rehearsal& rehearsal = jobs.front().result;
  REQUIRE(rehearsal.expectations.size() == 4);
  CHECK(rehearsal.expectations[0].met);
  CHECK(rehearsal.expectations[1].met);
  CHECK(rehearsal.expectations[2].met);
  CHECK_FALSE(rehearsal.expectations[3].met);
  const std::string text = render_run(rehearsal, {}, false);
  CHECK(text.find("74 us (44 us to 134 us)") != std::string::npos);
  CHECK(text.find("basis: calibrated on a CPU, 1 rank, 2026-11-22 (machine.json) (-v") !=
        std::string::npos);
  CHECK(text.find("not calibrated") == std::string::npos);
  Request request;
  request.command = "run";
  const Json json = json_of(rehearsal, request);
  CHECK(json["prediction"]["step_time_high_s"] == Approx(134e-6));
  CHECK(json["calibration"]["file"] == "machine.json");
}

TEST_CASE("what was not measured is named beside the calibration") {
  const TemporaryFile file;
  const Rehearsal rehearsal =
      rehearsal_of(training(file.cluster(), "", "{Linear: [4, 4]}, ReLU, {Linear: [4, 2]}"));
  REQUIRE(rehearsal.run.calibration);
  CHECK(rehearsal.run.calibration->not_measured ==
        std::vector<std::string>{"relu layer_backward", "relu layer_forward"});
  CHECK(render_run(rehearsal, {}, false)
            .find("not measured and outside the range: relu layer_backward, relu layer_forward") !=
        std::string::npos);
}

TEST_CASE("a calibration of another device is refused with what to write") {
  const TemporaryFile file;
  const Problem of_gpu = problem_of(training(file.cluster("h100-sxm5-80gb")));
  CHECK(of_gpu.kind == Problem::Kind::invalid);
  CHECK(of_gpu.message.find("it was measured on a CPU (cpu), but the scenario's cluster uses "
                            "h100-sxm5-80gb") != std::string::npos);
  CHECK(of_gpu.remedy == "write cluster: {gpu: cpu}, or calibrate on h100-sxm5-80gb");
  CHECK(of_gpu.place.line == 2);
  Calibration gpu = by_hand();
  gpu.origin.backend = "nccl";
  gpu.origin.preset = "a100-sxm4-80gb";
  const TemporaryFile other(gpu);
  CHECK(problem_of(training(other.cluster())).remedy ==
        "write cluster: {gpu: a100-sxm4-80gb}, or calibrate on cpu");
}

TEST_CASE("a calibration says nothing of a network alone, and one that is broken nothing at all") {
  const TemporaryFile file;
  const Problem flat = problem_of(
      "version: 1\ncluster: {ranks: 2, network: {bandwidth: 1 GB/s}, "
      "calibration: " +
      file.path + "}\nprogram: {main: [barrier]}\n");
  CHECK(flat.message.find("only a network") != std::string::npos);
  const TemporaryFile broken(R"({"format": 1})");
  const Problem bad = problem_of(training(broken.cluster()));
  CHECK(bad.message.find("/format: is not a text") != std::string::npos);
  CHECK(bad.remedy.find("lockstep calibrate") != std::string::npos);
  CHECK(problem_of(training("{gpu: cpu, preset: cpu, calibration: nowhere.json}"))
            .message.find("file not found") != std::string::npos);
}

TEST_CASE("without a calibration there is no range to expect") {
  const Problem problem =
      problem_of(training("{gpu: cpu, preset: cpu}", "expect: [step_time.high < 1 s]\n"));
  CHECK(problem.kind == Problem::Kind::unsupported);
  CHECK(problem.message.find("`step_time.high` is not available") == 0);
  CHECK(problem.remedy.find("lockstep calibrate") != std::string::npos);
}

TEST_CASE("the name that a driver gives a GPU leads to its preset") {
  CHECK(preset_of_gpu("NVIDIA H100 80GB HBM3") == "h100-sxm5-80gb");
  CHECK(preset_of_gpu("NVIDIA A100-SXM4-40GB") == "a100-sxm4-40gb");
  CHECK(preset_of_gpu("Tesla V100-SXM2-16GB") == "v100-sxm2-16gb");
  CHECK(preset_of_gpu("NVIDIA A100-PCIE-40GB") == "a100-pcie-40gb");
  CHECK(preset_of_gpu("NVIDIA A100 80GB PCIe") == "a100-pcie-80gb");
  CHECK(preset_of_gpu("NVIDIA H100 PCIe") == "h100-pcie-80gb");
  CHECK(preset_of_gpu("NVIDIA H200") == "h200-sxm-141gb");
  CHECK(preset_of_gpu("NVIDIA GeForce RTX 4090") == "rtx-4090");
  CHECK(preset_of_gpu("Tesla T4") == "t4");
  CHECK(preset_of_gpu("NVIDIA B200") == "b200-sxm-180gb");
  CHECK(preset_of_gpu("NVIDIA B300") == "b300-sxm-288gb");
  CHECK(preset_of_gpu("NVIDIA B100").empty());
  CHECK(preset_of_gpu("cpu").empty());
}

}  // namespace calibrated_test
