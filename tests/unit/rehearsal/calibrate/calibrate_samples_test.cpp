// What `calibrate` takes out of journals, compared with simulations whose times are known.
#include <catch2/catch.hpp>

#include "model/cluster/presets.hpp"
#include "rehearsal/calibrate/samples.hpp"
#include "rehearsal/calibrate/sweep.hpp"
#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace calibrate_samples_test {

namespace {

OneRun simulated(const std::string& text) {
  RunRequest request;
  request.lists = true;
  request.repeats_processes = true;  // the operations of a real run
  OneRun run = run_once(scenario_of(text), request);
  REQUIRE(run.ran);
  return run;
}

const SweepRun& sweep_named(const std::vector<SweepRun>& runs, const std::string& name) {
  for (const SweepRun& run : runs) {
    if (run.name.starts_with(name)) {
      return run;
    }
  }
  throw std::invalid_argument(name);
}

const TransferCurve* curve_of(const Calibration& calibration, OpKind kind) {
  for (const TransferCurve& curve : calibration.transfers) {
    if (curve.kind == kind) {
      return &curve;
    }
  }
  return nullptr;
}

}  // namespace

TEST_CASE("percentiles are those of the nearest rank") {
  std::vector<Time> times;
  for (int64_t number = 20; number >= 1; --number) {
    times.push_back(1_us * number);
  }
  const MeasuredTime of_twenty = percentiles(times);
  CHECK(of_twenty.low == 1_us);
  CHECK(of_twenty.median == 10_us);
  CHECK(of_twenty.high == 19_us);
  CHECK(percentiles({5_us}).high == 5_us);
}

TEST_CASE("every scenario of a calibration can run on as many ranks as were asked for") {
  for (const bool on_gpus : {false, true}) {
    for (const bool is_quick : {false, true}) {
      for (const int32_t ranks : {1, 2, 5}) {
        const std::vector<SweepRun> runs = sweep_of({ranks, on_gpus, is_quick});
        CHECK(!runs.empty());
        for (const SweepRun& run : runs) {
          INFO(run.name << "\n" << run.text);
          WorldAbilities abilities;
          abilities.computes_layers = true;
          const Preparation preparation =
              prepare(scenario_of(run.text), standard_strategies(), abilities);
          for (const Problem& problem : preparation.problems) {
            INFO(problem.message);
            CHECK(problem.kind == Problem::Kind::note);
          }
          CHECK(preparation.runnable());
          CHECK(preparation.options.world_size == run.ranks);
        }
      }
    }
  }
}

TEST_CASE("kernels come with the FLOPs and bytes that the simulation priced them by") {
  const DeviceModel device = *device_preset("cpu");
  for (const char* name : {"dense layers", "images", "tokens"}) {
    Samples samples;
    samples.add_training(simulated(sweep_named(sweep_of({2, false, true}), name).text), name);
    const Calibration calibration = samples.calibration();
    CHECK(calibration.kernels.size() > 10);
    for (const KernelCurve& curve : calibration.kernels) {
      for (const KernelPoint& point : curve.points) {
        INFO(name_of(curve.kernel) << " " << (curve.layer ? name_of(*curve.layer) : "") << " flops "
                                   << point.flops.count() << " bytes " << point.traffic.count());
        CHECK(point.time.median == roofline_time(device, curve.dtype, point.flops, point.traffic));
      }
    }
    CHECK(calibration.launch_overheads.front().time.median == device.launch_overhead);
  }
}

TEST_CASE("a training is judged by what the others say of it") {
  const std::vector<SweepRun> runs = sweep_of({1, false, true});
  Samples samples;
  for (const SweepRun& run : runs) {
    if (run.name.starts_with("dense layers")) {
      samples.add_training(simulated(run.text), run.name);
    }
  }
  const Calibration calibration = samples.calibration();
  // Three trainings of four steps, of which the first is warm-up.
  CHECK(calibration.held_out.size() == 9);
  for (const HeldOut& one : calibration.held_out) {
    CHECK(one.part == HeldOut::Part::compute);
    CHECK(one.measured > Time{});
    CHECK(one.predicted > Time{});
  }
}

TEST_CASE("an exchange inside a training begins with its gradients, not with its submission") {
  const std::string text = sweep_named(sweep_of({2, false, true}), "images").text;
  Samples samples;
  samples.add_training(simulated(text), "images");
  samples.add_communication(simulated(sweep_named(sweep_of({2, false, true}), "comm").text));
  int32_t exchanges = 0;
  for (const HeldOut& one : samples.calibration().held_out) {
    if (one.part == HeldOut::Part::communication) {
      ++exchanges;
      // In the simulation nothing but the straight lines between sizes is between the two.
      CHECK(seconds(one.measured) == Approx(seconds(one.predicted)).epsilon(0.02));
    }
  }
  CHECK(exchanges == 3);
}

TEST_CASE("communication is timed from the last that comes to the last that ends") {
  // 1 GB/s, 1 us per step, rings: all_reduce of two ranks moves half of the bytes twice.
  const std::string text = R"yaml(version: 1
cluster: {ranks: 2, network: {bandwidth: 1 GB/s, latency: 1 us}}
process_group: {backend: gloo}
program:
  main:
    - let: {x: "full(1000, 0.0)"}
    - repeat: 3
      do:
        - barrier
        - if: rank == 1
          then: [{host: 50 us}]
        - all_reduce: x
)yaml";
  Samples samples;
  samples.add_communication(simulated(text));
  const Calibration calibration = samples.calibration();
  const TransferCurve* all_reduce = curve_of(calibration, OpKind::all_reduce);
  REQUIRE(all_reduce != nullptr);
  CHECK(all_reduce->ranks == 2);
  REQUIRE(all_reduce->points.size() == 1);
  CHECK(all_reduce->points[0].bytes == 4000_B);
  CHECK(all_reduce->points[0].time.median == 2_us + 4_us);
}

}  // namespace calibrate_samples_test
