// Devices that are counted, and what cannot be done on them.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace refused_devices_test {

namespace {

Preparation prepared(const std::string& scenario) {
  return prepare(scenario_of(scenario), standard_strategies());
}

bool has_problem(const Preparation& preparation, Problem::Kind kind, const std::string& words) {
  return std::ranges::any_of(preparation.problems, [&](const Problem& problem) {
    return problem.kind == kind && problem.message.find(words) != std::string::npos;
  });
}

}  // namespace

// torchmetrics/metric.py: a metric object asks torch.distributed, which XLA does not initialise.
TEST_CASE("metric objects on several TPU devices are not modelled") {
  const auto on_tpu = [](const std::string& devices) {
    return prepared(
        "version: 1\ncluster: {preset: tpu-v3-8, nodes: 1}\n"
        "model: {input: [4], layers: [{Linear: [4, 2]}]}\nmetrics: {m: MeanMetric}\n"
        "trainer: {accelerator: tpu, max_epochs: 1, devices: " +
        devices + "}\ndata: {train: {samples: 32, batch_size: 2, drop_last: true}}\n");
  };
  CHECK(has_problem(on_tpu("8"), Problem::Kind::unsupported,
                    "TorchMetrics does not synchronise them there"));
  CHECK(!has_problem(on_tpu("1"), Problem::Kind::unsupported, "TorchMetrics"));
}

TEST_CASE("what counts processors that no cluster has is refused with the reason") {
  const auto counted = [](const std::string& given) {
    return prepared(
        "version: 1\nmodel: {input: [4], layers: [{Linear: [4, 2]}]}\n"
        "versions: {lightning: \"1.6\"}\ntrainer: {max_epochs: 1, " +
        given + "}\ndata: {train: {samples: 8, batch_size: 2}}\n");
  };
  CHECK(has_problem(counted("ipus: 4"), Problem::Kind::refused, "processors of Graphcore (IPU)"));
  CHECK(has_problem(counted("hpus: 4"), Problem::Kind::refused, "Gaudi processors (HPU)"));
}

TEST_CASE("distributed_backend is accelerator up to 1.4") {
  const Preparation preparation = prepared(
      "version: 1\nmodel: {input: [4], layers: [{Linear: [4, 2]}]}\n"
      "cluster: {preset: dgx-a100, nodes: 1}\n"
      "trainer: {max_epochs: 1, gpus: 2, distributed_backend: ddp}\n"
      "data: {train: {samples: 8, batch_size: 2}}\n");
  CHECK(preparation.runnable());
  CHECK(preparation.placement.strategy.name == "ddp");
  CHECK(preparation.placement.devices.size() == 2);
  CHECK(has_problem(preparation, Problem::Kind::warning, "has been renamed"));
}

}  // namespace refused_devices_test
