// What a scenario with `versions.kernels` gives the prices of its kernels.
#include "rehearsal/run/kernels.hpp"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "model/cluster/presets.hpp"
#include "sim/cost/kernel_constants.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"
#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::cli;

namespace kernels_test {

namespace {

std::string text_of(const std::string& software, const std::string& model) {
  return "version: 1\nversions: {kernels: " + software + "}\ncluster: {preset: dgx-1v}\nmodel: {" +
         model + "}\ntrainer: {accelerator: gpu, devices: 2, strategy: ddp, max_steps: 2}\n";
}

// Two nodes with a GPU each, whose NICs have this rate.
Breakdown over_network(const std::string& rate) {
  return test::predicted(
             "version: 1\nversions: {kernels: pytorch}\n"
             "cluster: {preset: dgx-1v, nodes: 2, nics: 1, network: {bandwidth: " +
             rate +
             "}}\nmodel: {preset: gpt2}\ndata: {train: {samples: 640, batch_size: 16}}\n"
             "trainer: {accelerator: gpu, devices: 1, num_nodes: 2, strategy: ddp, max_steps: 4}\n")
      .results.prediction.breakdown;
}

double hidden_of(const Breakdown& of) {
  return seconds(of.communication - of.exposed_communication);
}

}  // namespace

TEST_CASE("images are channels_last where the model says so, or the software by itself") {
  const auto has_them = [](const std::string& software, const std::string& model) {
    const Scenario scenario = test::scenario_of(text_of(software, model));
    return kernel_machine(scenario, *device_preset("v100-sxm2-16gb"))->channels_last;
  };
  CHECK(!has_them("pytorch", "preset: resnet50"));
  CHECK(!has_them("pytorch", "preset: resnet50, memory_format: contiguous"));
  CHECK(has_them("pytorch", "preset: resnet50, memory_format: channels_last"));
  CHECK(has_them("graph", "preset: resnet50"));
}

TEST_CASE("kernels of a run lose by what its communication hides behind them") {
  const Breakdown fast = over_network("50 GB/s");
  const Breakdown slow = over_network("8 GB/s");
  const double more_hidden = hidden_of(slow) - hidden_of(fast);
  REQUIRE(more_hidden > 10e-3);
  const double contention = sim::fitted_kernel_constants()[sim::KernelTerm::contention];
  CHECK(seconds(slow.compute - fast.compute) == Approx(contention * more_hidden).epsilon(0.1));
}

}  // namespace kernels_test
