#include <catch2/catch.hpp>

#include "tests/unit/io/scenario/memory_files.hpp"

namespace lockstep::merge_test {

using test::load_files;
using test::load_text;

namespace {

const Scenario& only(const LoadedScenarios& loaded) {
  CAPTURE(render(loaded.diagnostics, loaded.sources));
  REQUIRE(loaded.scenarios.size() == 1);
  return loaded.scenarios.front();
}

std::string message(const LoadedScenarios& loaded) {
  CAPTURE(render(loaded.diagnostics, loaded.sources));
  REQUIRE(loaded.diagnostics.size() == 1);
  return loaded.diagnostics.front().message;
}

}  // namespace

TEST_CASE("a case merges maps key by key and replaces lists, scalars and objects") {
  const LoadedScenarios loaded = load_text(R"(version: 1
env: {A: "1", B: "2"}
cluster: {preset: dgx-a100, network: {bandwidth: 100 Gb/s, latency: 5 us}}
trainer:
  devices: 4
  max_steps: 10
  strategy: {DDPStrategy: {bucket_cap_mb: 1}}
  callbacks: [{EarlyStopping: {monitor: a}}]
data: {batch_size: 4, train: {samples: 100}}
cases:
  first:
    env: {B: "3", C: "4"}
    cluster: {network: {latency: 1 us}}
    trainer: {devices: 8, strategy: {DDPStrategy: {static_graph: true}}, callbacks: []}
    data: {train: {shuffle: false}}
  second: {}
)");
  REQUIRE(loaded.scenarios.size() == 2);
  const Scenario& first = loaded.scenarios[0];
  CHECK(first.name == "first");
  REQUIRE(first.env.size() == 3);
  CHECK(first.env[0].value == "1");
  CHECK(first.env[1].value == "3");
  CHECK(first.env[2].value == "4");
  CHECK(first.cluster->preset->value == "dgx-a100");
  CHECK(first.cluster->network->bandwidth->value == BytesPerSecond(12'500'000'000));
  CHECK(first.cluster->network->latency->value == 1_us);
  CHECK(*first.trainer->devices->get_if<int64_t>() == 8);
  CHECK(first.trainer->max_steps->value == 10);
  CHECK(first.trainer->callbacks.empty());
  REQUIRE(first.trainer->strategy->arguments.size() == 1);
  CHECK(first.trainer->strategy->arguments[0].name == "static_graph");
  REQUIRE(first.data->train.size() == 1);
  CHECK(first.data->train[0].samples->value == 100);
  CHECK(first.data->train[0].shuffle->value == false);
  CHECK(first.data->common.batch_size->value == 4);

  const Scenario& second = loaded.scenarios[1];
  CHECK(second.name == "second");
  CHECK(second.trainer->callbacks.size() == 1);
  CHECK(second.trainer->strategy->arguments[0].name == "bucket_cap_mb");
}

TEST_CASE("null in a case asks for the default again") {
  const LoadedScenarios loaded = load_text(
      "version: 1\nfaults: [{lost_rank: {rank: 1}}]\ntrainer: {devices: 4, max_steps: 3}\n"
      "cases: {a: {faults: null, trainer: {max_steps: null}}}\n");
  const Scenario& scenario = only(loaded);
  CHECK(scenario.faults.empty());
  CHECK_FALSE(scenario.trainer->max_steps);
  CHECK(scenario.trainer->devices);
}

TEST_CASE("a hook of a case replaces the hook of the file and leaves the others") {
  const LoadedScenarios loaded = load_text(R"(version: 1
program:
  training_step: [forward, backward]
  validation_step: [forward]
cases:
  a: {program: {training_step: [forward]}}
)");
  const Scenario& scenario = only(loaded);
  CHECK(scenario.program->find("training_step")->statements.size() == 1);
  CHECK(scenario.program->find("validation_step")->statements.size() == 1);
}

TEST_CASE("modules merge by name, and each as a model") {
  const LoadedScenarios loaded = load_text(R"(version: 1
model: {modules: {g: {preset: mlp, in_features: 3}, d: {preset: mlp}}}
cases:
  a: {model: {modules: {g: {in_features: 5}}}}
)");
  const Scenario& scenario = only(loaded);
  REQUIRE(scenario.model->modules.size() == 2);
  CHECK(scenario.model->modules[0].model.preset->value == "mlp");
  CHECK(*scenario.model->modules[0].model.shape[0].value.get_if<int64_t>() == 5);
}

TEST_CASE("one case can be asked for, and a wrong name is answered with the nearest") {
  const std::string text = "version: 1\ncases: {small: {seed_everything: 1}, large: {}}\n";
  LoadOptions options;
  options.scenario_case = "small";
  CHECK(only(load_text(text, options)).seed->value == 1);
  options.scenario_case = "smal";
  const LoadedScenarios wrong = load_text(text, options);
  CHECK_THAT(message(wrong), Catch::Contains("no case `smal`"));
  CHECK_THAT(wrong.diagnostics[0].remedy, Catch::Contains("`small`"));
  CHECK_THAT(message(load_text("version: 1\n", options)), Catch::Contains("no cases"));
}

TEST_CASE("what all cases share is complained about once") {
  const LoadedScenarios loaded =
      load_text("version: 1\ntrainer: {device: 2}\ncases: {a: {}, b: {}, c: {}}\n");
  CHECK(loaded.diagnostics.size() == 1);
}

TEST_CASE("all errors of a file are found at once, in the order of the file") {
  const LoadedScenarios loaded = load_text(
      "version: 1\nseed_everything: 01\ntrainer: {benchmark: yes, device: 2}\nexpect: [no_hag]\n");
  REQUIRE(loaded.diagnostics.size() == 4);
  CHECK(loaded.diagnostics[0].place.line == 2);
  CHECK(loaded.diagnostics[1].place.column == 22);
  CHECK(loaded.diagnostics[2].place.column == 27);
  CHECK(loaded.diagnostics[3].place.line == 4);
}

TEST_CASE("the file is merged over its includes, a later include over an earlier one") {
  const LoadedScenarios loaded = load_files(
      {{"d/s.yaml", "version: 1\ninclude: [base/a.yaml, base/b.yaml]\nseed_everything: 3\n"},
       {"d/base/a.yaml", "include: c.yaml\ntrainer: {devices: 1, max_steps: 5}\n"},
       {"d/base/b.yaml", "trainer: {devices: 2}\nseed_everything: 9\n"},
       {"d/base/c.yaml", "trainer: {num_nodes: 4, max_steps: 7}\n"}},
      "d/s.yaml");
  const Scenario& scenario = only(loaded);
  CHECK(scenario.seed->value == 3);
  CHECK(*scenario.trainer->devices->get_if<int64_t>() == 2);
  CHECK(scenario.trainer->max_steps->value == 5);
  CHECK(scenario.trainer->num_nodes->value == 4);
  CHECK(scenario.trainer->num_nodes->place == SourcePlace{"d/base/c.yaml", 1, 22});
}

TEST_CASE("an error in an included file names that file") {
  const LoadedScenarios loaded =
      load_files({{"s.yaml", "version: 1\ninclude: a.yaml\n"}, {"a.yaml", "sed: 3\n"}}, "s.yaml");
  CHECK_THAT(message(loaded), Catch::Contains("`sed`"));
  CHECK(loaded.diagnostics[0].place == SourcePlace{"a.yaml", 1, 1});
}

TEST_CASE("includes without end, missing or of the wrong type are refused where they are asked") {
  const LoadedScenarios circle = load_files(
      {{"s.yaml", "version: 1\ninclude: a.yaml\n"}, {"a.yaml", "include: ./s.yaml\n"}}, "s.yaml");
  CHECK_THAT(message(circle), Catch::Contains("includes itself"));
  CHECK(circle.diagnostics[0].place == SourcePlace{"a.yaml", 1, 10});
  const LoadedScenarios missing = load_text("version: 1\ninclude: [no.yaml]\n");
  CHECK_THAT(message(missing), Catch::Contains("`no.yaml` cannot be included"));
  CHECK(missing.diagnostics[0].place == SourcePlace{"s.yaml", 2, 11});
  CHECK_THAT(message(load_text("version: 1\ninclude: {a: b}\n")), Catch::Contains("a path"));
}

TEST_CASE("includes that double at every level end at the limit of files") {
  std::map<std::string, std::string> files;
  for (int level = 0; level < 30; ++level) {
    const std::string next = std::to_string(level + 1) + ".yaml";
    files[std::to_string(level) + ".yaml"] = "include: [" + next + ", " + next + "]\n";
  }
  files["30.yaml"] = "version: 1\n";
  const LoadedScenarios loaded = load_files(files, "0.yaml");
  REQUIRE_FALSE(loaded.ok());
  CHECK_THAT(loaded.diagnostics[0].message, Catch::Contains("more than 64 files"));
}

TEST_CASE("--set is merged last and its value is YAML") {
  LoadOptions options;
  options.set = {"trainer.devices=8", "verify.world_sizes=[2, 8]", "trainer.max_steps=null",
                 "trainer.strategy={DDPStrategy: {bucket_cap_mb: 50}}"};
  const Scenario scenario = only(load_text(
      "version: 1\ntrainer: {devices: 2, max_steps: 3, strategy: dp}\ncases: {a: {}}\n", options));
  CHECK(*scenario.trainer->devices->get_if<int64_t>() == 8);
  CHECK_FALSE(scenario.trainer->max_steps);
  CHECK(scenario.trainer->strategy->name == "DDPStrategy");
  REQUIRE(scenario.verify->world_sizes.size() == 2);
  CHECK(scenario.verify->world_sizes[1].value == 8);
  CHECK(scenario.trainer->devices->place == SourcePlace{"--set trainer.devices", 1, 17});
}

TEST_CASE("a wrong --set is refused with its own place") {
  const auto load = [](const std::string& argument) {
    LoadOptions options;
    options.set = {argument};
    return load_text("version: 1\n", options);
  };
  const LoadedScenarios unknown = load("trainer.device=8");
  CHECK_THAT(message(unknown), Catch::Contains("no key `device`"));
  CHECK(unknown.diagnostics[0].place == SourcePlace{"--set trainer.device", 1, 9});
  const LoadedScenarios wrong = load("seed_everything=x");
  CHECK_THAT(message(wrong), Catch::Contains("takes an int"));
  CHECK(wrong.diagnostics[0].place == SourcePlace{"--set seed_everything", 1, 17});
  CHECK_THAT(message(load("trainer.devices")), Catch::Contains("no value"));
  CHECK_THAT(message(load("trainer.devices=")), Catch::Contains("no value"));
  CHECK_THAT(message(load("=3")), Catch::Contains("no key"));
  CHECK_THAT(message(load("trainer..devices=3")), Catch::Contains("empty key"));
  CHECK_THAT(message(load(".=3")), Catch::Contains("empty key"));
  CHECK_THAT(message(load("version=2")), Catch::Contains("cannot change `version`"));
  CHECK_THAT(message(load("cases.a.b=2")), Catch::Contains("cannot change `cases`"));
}

TEST_CASE("anchors, aliases and merge keys work, and what is written wins over `<<`") {
  const Scenario scenario = only(load_text(R"(version: 1
data:
  train: &loader {samples: 10, batch_size: 2}
  val: {<<: *loader, samples: 20}
  test: {<<: [{batch_size: 3}, *loader], shuffle: true}
)"));
  CHECK(scenario.data->val[0].samples->value == 20);
  CHECK(scenario.data->val[0].batch_size->value == 2);
  CHECK(scenario.data->test[0].batch_size->value == 3);
  CHECK(scenario.data->test[0].samples->value == 10);
}

}  // namespace lockstep::merge_test
