#include "model/scenario/defaults.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/io/scenario/memory_files.hpp"

namespace lockstep::defaults_test {
namespace {

ResolvedScenario resolve(const std::string& text) {
  LoadedScenarios loaded = test::load_text("version: 1\n" + text);
  CAPTURE(render(loaded.diagnostics, loaded.sources));
  REQUIRE(loaded.scenarios.size() == 1);
  return with_defaults(loaded.scenarios.front());
}

}  // namespace

TEST_CASE("an empty scenario becomes a perceptron on one node, and says so") {
  const ResolvedScenario resolved = resolve("");
  const Scenario& scenario = resolved.scenario;
  CHECK(scenario.seed->value == 0);
  CHECK(scenario.cluster->preset->value == "dgx-h100");
  CHECK(scenario.cluster->nodes->value == 1);
  CHECK(scenario.model->preset->value == "mlp");
  CHECK(scenario.model->loss->name == "CrossEntropyLoss");
  CHECK(scenario.launcher->name == "lightning");
  CHECK(scenario.optimizers[0].name == "SGD");
  CHECK(scenario.optimizers[0].find("lr")->number() == 0.1);
  CHECK(scenario.verify->max_schedules->value == 10'000);
  CHECK(resolved.assumptions == std::vector<std::string>{"cluster: one dgx-h100 per node",
                                                         "model: a two-layer perceptron 32-64-2",
                                                         "data.train: 1024 samples",
                                                         "optimizer: SGD with lr 0.1"});
}

TEST_CASE("loaders inherit the keys under data, then have the defaults of their stage") {
  const Scenario scenario =
      resolve("data: {batch_size: 4, num_workers: 2, val: [{samples: 7}, {batch_size: 1}]}\n")
          .scenario;
  const DataSpec& data = *scenario.data;
  CHECK(data.train[0].samples->value == 1024);
  CHECK(data.train[0].batch_size->value == 4);
  CHECK(data.train[0].shuffle->value);
  REQUIRE(data.val.size() == 2);
  CHECK(data.val[0].samples->value == 7);
  CHECK(data.val[1].samples->value == 256);
  CHECK(data.val[1].batch_size->value == 1);
  CHECK(data.val[1].num_workers->value == 2);
  CHECK_FALSE(data.val[1].shuffle->value);
  CHECK(data.val[1].prefetch_factor->value == 2);
  CHECK(data.val[1].set_epoch->value);
}

TEST_CASE("a loader's own measure of its data replaces the common one") {
  const DataSpec data =
      *resolve("data: {samples: 100, val: {batches: 3}, test: {tokens: 1000}}\n").scenario.data;
  CHECK(data.train[0].samples->value == 100);
  CHECK_FALSE(data.val[0].samples);
  CHECK(data.val[0].batches);
  CHECK_FALSE(data.test[0].samples);
  CHECK(data.predict[0].samples->value == 100);
}

TEST_CASE("the process group follows the accelerator, and its timeout is decided later") {
  const Scenario gpu = resolve("trainer: {accelerator: gpu}\n").scenario;
  CHECK(gpu.process_group->backend->value == ProcessGroupBackend::nccl);
  CHECK_FALSE(gpu.process_group->timeout);
  CHECK(gpu.process_group->eager_limit->value == 0_B);
  const Scenario cpu = resolve("trainer: {accelerator: cpu}\n").scenario;
  CHECK(cpu.process_group->backend->value == ProcessGroupBackend::gloo);
  CHECK_FALSE(cpu.process_group->eager_limit);
  CHECK(cpu.cluster->preset->value == "cpu");
}

TEST_CASE("a bare program keeps the sections of a trainer empty") {
  const ResolvedScenario resolved = resolve(
      "cluster: {ranks: 4, network: {bandwidth: 1 GB/s, latency: 1 us}}\n"
      "program: {main: [barrier]}\n");
  CHECK(resolved.scenario.cluster->collectives->value == CollectiveModel::ring);
  CHECK_FALSE(resolved.scenario.cluster->preset);
  CHECK_FALSE(resolved.scenario.model);
  CHECK_FALSE(resolved.scenario.data);
  CHECK_FALSE(resolved.scenario.trainer);
}

TEST_CASE("what the user wrote keeps its value and its place") {
  const Scenario scenario = resolve("seed_everything: 3\nmodel: {preset: gpt2}\n").scenario;
  CHECK(scenario.seed->value == 3);
  CHECK(scenario.seed->place == SourcePlace{"s.yaml", 2, 18});
  CHECK(scenario.model->compile->place.line == 0);
}

TEST_CASE("the columns that are assumed draw at different places") {
  const DataSpec data = *resolve("").scenario.data;
  const auto& columns = data.train[0].values->columns;
  REQUIRE(columns.size() == 3);
  CHECK(columns[0].name == "score");
  CHECK(columns[1].expression.text() == "random() < 0.5");
  CHECK_FALSE(columns[0].expression.root().place == columns[2].expression.root().place);
}

}  // namespace lockstep::defaults_test
