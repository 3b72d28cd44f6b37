#include <catch2/catch.hpp>

#include "io/scenario/load/load.hpp"

namespace lockstep::every_section_test {
namespace {

const std::string path = LOCKSTEP_SOURCE_DIR "/tests/unit/io/scenario/examples/every-section.yaml";

/// The cases `small` and `large` of a scenario that uses every section.
std::vector<Scenario> load_example() {
  LoadedScenarios loaded = load_scenario_file(path);
  CAPTURE(render(loaded.diagnostics, loaded.sources));
  REQUIRE(loaded.scenarios.size() == 2);
  return std::move(loaded.scenarios);
}

}  // namespace

TEST_CASE("every section loads into typed form: cases") {
  const std::vector<Scenario> scenarios = load_example();
  const Scenario& small = scenarios[0];
  const Scenario& large = scenarios[1];
  CHECK(small.name == "small");
  CHECK(small.faults.empty());
  CHECK(*small.trainer->devices->get_if<int64_t>() == 2);
  CHECK(large.faults.size() == 4);
  CHECK(large.trainer->strategy->name == "FSDPStrategy");
}

TEST_CASE("every section loads into typed form: machine") {
  const std::vector<Scenario> scenarios = load_example();
  const Scenario& small = scenarios[0];
  const ClusterSpec& cluster = *small.cluster;
  CHECK(cluster.gpu->memory->value == Bytes(80'000'000'000));
  CHECK(cluster.gpu->memory->place == SourcePlace{path, 10, 36});
  REQUIRE(cluster.gpu->flops.size() == 2);
  CHECK(cluster.gpu->flops[1].rate == FlopsPerSecond(19'500'000'000'000));
  CHECK(cluster.network->bandwidth->value == 25_GBps);
  CHECK(cluster.memory->value == 2048_GiB);
  CHECK(cluster.collectives->value == CollectiveModel::nccl);
  CHECK(small.process_group->timeout->value == 30_min);
  CHECK(small.launcher->name == "torchrun");
  CHECK(small.env[1].value == "{node_rank + 1}");
  REQUIRE(small.env[1].parts.size() == 1);
  CHECK(small.env[1].parts[0].expression->text() == "node_rank + 1");
  CHECK(small.env[1].parts[0].expression->place() == SourcePlace{path, 5, 47});
}

TEST_CASE("every section loads into typed form: model") {
  const std::vector<Scenario> scenarios = load_example();
  const Scenario& small = scenarios[0];
  const ModelSpec& model = *small.model;
  REQUIRE(model.layers.size() == 6);
  CHECK(model.layers[0].object.arguments[1].name == "out_features");
  CHECK(model.layers[2].name->value == "head");
  CHECK(model.layers[3].kind == LayerSpec::Kind::repeat);
  CHECK(model.layers[3].times == 2);
  CHECK(model.layers[3].layers[0].kind == LayerSpec::Kind::residual);
  CHECK(model.layers[3].layers[0].layers.size() == 2);
  CHECK(model.layers[4].cost.backward->value == 2_ms);
  CHECK(model.layers[4].device->value == 1);
  CHECK(model.unpicklable[0].value == Unpicklable::transform);
}

TEST_CASE("every section loads into typed form: data, optimizers and trainer") {
  const std::vector<Scenario> scenarios = load_example();
  const Scenario& small = scenarios[0];
  const DataSpec& data = *small.data;
  CHECK(data.common.sample_time->value == 50_us);
  REQUIRE(data.val.size() == 2);
  CHECK(data.val[0].sampler->value == SamplerKind::unrepeated);
  CHECK(data.val[1].batches->value.text() == "10 + (rank == 0)");
  CHECK(data.common.values->columns.size() == 3);
  REQUIRE(small.optimizers.size() == 2);
  CHECK(small.optimizers[1].name == "SGD");
  CHECK(small.optimizers[0].find("betas")->get_if<PlainValue::List>()->size() == 2);
  CHECK(small.trainer->precision->value == "16");
  CHECK(small.trainer->limit_val_batches->number() == 0.5);
  CHECK(small.trainer->callbacks[0].find("patience")->number() == 3.0);
}

TEST_CASE("every section loads into typed form: program") {
  const std::vector<Scenario> scenarios = load_example();
  const Scenario& small = scenarios[0];
  const Hook& step = *small.program->find("training_step");
  REQUIRE(step.statements.size() == 7);
  const Statement& reduce = step.statements[2];
  CHECK(reduce.kind == StatementKind::all_reduce);
  CHECK(reduce.communication.op->value == ReduceOp::avg);
  CHECK(reduce.asynchronous->value);
  CHECK(reduce.result->value == "mean_loss");
  CHECK(reduce.group->value == "self.pair");
  CHECK(reduce.hook == "training_step");
  CHECK(reduce.place == SourcePlace{path, 68, 7});
  CHECK(step.statements[6].log.name->value == "train/loss");
  const Hook& end = *small.program->find("on_validation_epoch_end");
  const Statement& branch = end.statements[0];
  CHECK(branch.kind == StatementKind::branch);
  REQUIRE(branch.body.size() == 1);
  CHECK(branch.body[0].at->value == "model.py:25");
  CHECK(branch.body[0].communication.tensor->value.place() == SourcePlace{path, 79, 33});
  CHECK(branch.otherwise.size() == 1);
  CHECK(end.statements[1].body.size() == 2);
  CHECK(end.statements[2].log.dictionary[0].name == "val/f1");
  CHECK_FALSE(end.statements[4].all->value);
}

TEST_CASE("every section loads into typed form: faults, verify and expectations") {
  const std::vector<Scenario> scenarios = load_example();
  const Scenario& small = scenarios[0];
  const Scenario& large = scenarios[1];
  CHECK(large.faults[0].at->value.kind == Instant::Kind::step);
  CHECK(large.faults[0].at->value.count == 3);
  CHECK(large.faults[1].bandwidth->value == 0.25);
  CHECK(large.faults[1].between[1].value.number == 1);
  CHECK(large.faults[3].ranks->value.kind == RankSelection::Kind::all);
  CHECK(small.verify->ignore[0].code == "LS402");
  REQUIRE(small.expectations.size() == 8);
  CHECK(small.expectations[1].codes == std::vector<std::string>{"LS301"});
  CHECK(small.expectations[3].tolerance->fraction == 0.05);
  CHECK(small.expectations[3].left->text() == "step_time");
  const Expectation& metric = small.expectations[4];
  CHECK(metric.rank == 0);
  REQUIRE(metric.results.size() == 2);
  CHECK(metric.results[0].name == "metric");
  CHECK(metric.results[0].key == "val/f1");
  CHECK(metric.expression->names()[0] == metric.results[0].placeholder);
  CHECK(metric.results[1].name == "single_device");
  CHECK(small.expectations[5].results[0].scenario_case == "small");
  CHECK(small.expectations[6].results[0].name == "transfers.bytes");
  CHECK(small.expectations[6].results[0].key == "all_reduce");
}

}  // namespace lockstep::every_section_test
