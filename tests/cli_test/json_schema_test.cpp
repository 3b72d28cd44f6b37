// Every command with --format json against docs/json-schema.json.
#include <catch2/catch.hpp>
#include <set>

#include "tests/cli_test/json_schema.hpp"
#include "tests/cli_test/program.hpp"

using namespace lockstep::test;

namespace json_schema_test {
using nlohmann::json;

namespace {

const std::string scenarios = LOCKSTEP_SOURCE_DIR "/scenarios/";
const std::string data = LOCKSTEP_SOURCE_DIR "/tests/data/";

using Errors = std::vector<std::string>;

const JsonSchema& schema() {
  static const JsonSchema read = [] {
    std::ifstream file(LOCKSTEP_SOURCE_DIR "/docs/json-schema.json");
    return JsonSchema(json::parse(file));
  }();
  return read;
}

/// What a command prints, compared with the schema.
json told(const std::string& command) {
  const Ended ended = run_program(command + " --format json", "2>/dev/null");
  INFO("lockstep " << command << "\n" << ended.output.substr(0, 2000));
  const json value = json::parse(ended.output);
  CHECK(schema().errors(value) == Errors());
  if (value.contains("cases")) {
    CHECK(value.at("exit_code") == ended.code);
  }
  return value;
}

const std::string unsupported =
    "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\n"
    "trainer: {accelerator: gpu, devices: 2, strategy: {PipelineStrategy: {schedule: SpecTrain}}, "
    "max_epochs: 1}\n"
    "data: {train: {samples: 16, batch_size: 4}}\n";

}  // namespace

TEST_CASE("the schema of the output keeps to the keywords that its validator knows") {
  CHECK(schema().faults() == Errors());
  const auto faults = [](const char* text) { return JsonSchema(json::parse(text)).faults(); };
  CHECK(faults(R"({"properties": {"a": {"minimum": 1}}})") ==
        Errors{"#/properties/a/minimum: unknown keyword"});
  CHECK(faults(R"({"items": {"$ref": "#/$defs/none"}})").size() == 1);
  CHECK(faults(R"({"anyOf": [{"type": "float"}]})").size() == 1);
}

TEST_CASE("the validator finds what breaks a schema") {
  const JsonSchema small(json::parse(R"({
    "type": "object", "required": ["kind", "list"], "additionalProperties": false,
    "properties": {"kind": {"enum": ["a", "b"]}, "list": {"type": "array",
                   "items": {"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/one"}]}},
                   "version": {"const": 2}},
    "$defs": {"one": {"type": ["string", "null"]}}})"));
  const auto errors = [&](const char* text) { return small.errors(json::parse(text)).size(); };
  CHECK(errors(R"({"kind": "a", "list": [1, "x", null], "version": 2})") == 0);
  CHECK(errors(R"([])") == 1);
  CHECK(errors(R"({"kind": "a"})") == 1);
  CHECK(errors(R"({"kind": "c", "list": []})") == 1);
  CHECK(errors(R"({"kind": "a", "list": [], "more": 1})") == 1);
  CHECK(errors(R"({"kind": "a", "list": [], "version": 1})") == 1);
  CHECK(errors(R"({"kind": "a", "list": [1.5]})") == 2);
}

TEST_CASE("commands about scenarios have one shape for one case and for many") {
  const Folder folder;
  const std::string broken = folder.write("broken.yaml", "version: 1\nclusters: {ranks: 2}\n");
  const std::string missing = folder.write("missing.yaml", unsupported);
  for (const char* command : {"run ", "verify ", "test "}) {
    const json one = told(command + data + "ring.yaml:sum");
    const json three = told(command + data + "ring.yaml");
    CHECK(one.at("cases").size() == 1);
    CHECK(three.at("cases").size() == 3);
    const json guarded = told(command + data + "ring.yaml:guarded").at("cases").at(0);
    CHECK(guarded.at("ran") == true);
    CHECK(guarded.at("findings").at(0).at("code") == "LS101");

    const json invalid = told(command + broken);
    CHECK(invalid.at("verdict") == "invalid");
    REQUIRE(invalid.at("cases").size() == 1);
    const json& problem = invalid.at("cases").at(0).at("problems").at(0);
    CHECK(problem.at("kind") == "invalid");
    CHECK(problem.at("place").at("line") == 2);
    CHECK(invalid.at("cases").at(0).at("findings").empty());

    const json lacking = told(command + missing);
    CHECK(lacking.at("verdict") == "unsupported");
    CHECK(lacking.at("cases").at(0).at("problems").at(0).at("kind") == "unsupported");
  }
}

TEST_CASE("what trainings print keeps to the schema") {
  for (const char* name : {"guarded-all-gather.yaml", "f1-averaged.yaml", "wrong-checkpoint.yaml",
                           "cuda-zero.yaml", "too-large-for-the-device.yaml",
                           "learning-rate-scaled-twice.yaml", "rank-local-value.yaml"}) {
    told("verify " + scenarios + name);
  }
  told("run " + scenarios + "accumulation.yaml:accumulated");
  told("test " + scenarios + "metric-of-some-ranks.yaml " + scenarios + "map.yaml");
}

TEST_CASE("pipelines, ranks of several devices, and experts keep to the schema") {
  const auto case_of = [](const std::string& command) { return told(command).at("cases").at(0); };
  const json pipeline = case_of("run " + scenarios + "pipeline/one-process.yaml:pipelined");
  CHECK(pipeline.at("pipeline").at("ranks").size() == 4);
  CHECK(!pipeline.at("pipeline").at("waits").empty());
  const json devices = case_of("run " + scenarios + "pipeline/one-process.yaml:four_devices");
  CHECK(devices.at("pipeline").is_null());
  CHECK(devices.at("devices").size() == 4);
  // Two experts of each of 8 positions of 16 samples are chosen, in one layer.
  const json experts =
      case_of("verify " + scenarios + "experts/expert-parallel.yaml").at("experts");
  REQUIRE(experts.size() == 1);
  int64_t choices = 0;
  for (const json& of_expert : experts.at(0).at("choices")) {
    choices += of_expert.get<int64_t>();
  }
  CHECK(choices == 2 * 8 * 16);
}

TEST_CASE("exchanges now and then, and restarts, keep to the schema") {
  const json averaging =
      told("run " + scenarios + "ddp-hooks/outer-optimizer.yaml:every_4_steps").at("cases").at(0);
  CHECK(averaging.at("prediction").at("steps_of_cycle") == 4);
  CHECK(averaging.at("prediction").at("mean_step_time_s") >
        averaging.at("prediction").at("step_time_s"));
  const json every_step =
      told("run " + scenarios + "accumulation.yaml:every_batch").at("cases").at(0);
  CHECK(!every_step.at("prediction").contains("steps_of_cycle"));
  // Two failures within epochs: of each of 4 ranks 4 batches of 4 samples are repeated, then 2.
  const json twice = told("verify " + scenarios + "elastic/resumed-twice.yaml:both_epochs");
  const json& elastic = twice.at("cases").at(0).at("elastic");
  REQUIRE(elastic.at("resumed_epochs").size() == 2);
  CHECK(elastic.at("resumed_epochs").at(0).at("samples_repeated") == 64);
  CHECK(elastic.at("resumed_epochs").at(1).at("samples_repeated") == 32);
  CHECK(elastic.at("resumed_epoch") == elastic.at("resumed_epochs").at(1));
}

TEST_CASE("a sweep keeps to the schema") {
  const json all = told("sweep " + scenarios + "too-large-for-the-device.yaml:" +
                        "too_large --vary data.train.batch_size=1,64");
  CHECK(all.at("rows").size() == 2);
  CHECK(all.at("exit_code") == 0);
}

TEST_CASE("a plan keeps to the schema, and its commands run what it shows") {
  const json plan =
      told("plan " + scenarios + "ddp-one-node.yaml --set trainer.devices=2 --samples 8 --top 2");
  REQUIRE(plan.at("best").size() == 2);
  CHECK(plan.at("best")[0].at("samples_per_s") >= plan.at("best")[1].at("samples_per_s"));
  CHECK(plan.at("not_tried") == 0);
  const json& best = plan.at("best")[0];
  const std::string command = best.at("command");
  REQUIRE(command.starts_with("lockstep run "));
  const json run = told(command.substr(std::string("lockstep ").size()));
  const double samples_per_s = run.at("cases")[0].at("prediction").at("samples_per_s");
  CHECK(samples_per_s == Approx(best.at("samples_per_s").get<double>()).epsilon(0.01));
}

TEST_CASE("collective keeps to the schema, with measurements and without") {
  const std::string data = std::string(LOCKSTEP_SOURCE_DIR) + "/data/nccl-tests/";
  CHECK(told("collective all_reduce --cluster dgx-a100").at("rows").size() == 30);
  const json compared =
      told("collective all_reduce --cluster " + data + "systems.yaml:a100 --against " + data +
           "a100_1x8_eight_processes_all_reduce.csv");
  CHECK(compared.at("rows").front().contains("error"));
}

TEST_CASE("explain and doctor keep to the schema") {
  for (const char* page : {"", "LS101", "step_time", "trainer.precision", "all_gather",
                           "EarlyStopping", "presets", "guides", "guides sixty-four-over-four"}) {
    told(std::string("explain ") + page);
  }
  const json environment = told("explain " + scenarios + "guide-environment.yaml:torchrun --env");
  CHECK(environment.at("world_size") == 3);
  const Folder folder;
  told("explain " + folder.write("a.yaml", "version: 7\n") + " --env");
  CHECK(told("doctor").at("command") == "doctor");
  const json presets = told("presets");
  for (const char* list : {"devices", "nodes", "networks"}) {
    CHECK(presets.at(list).size() > 5);
    CHECK(told(std::string("presets ") + list).at(list) == presets.at(list));
  }
}

TEST_CASE("a run on TPUs says in JSON how many graphs are compiled") {
  const auto run = [](const char* file) {
    return told("run " + scenarios + file).at("cases").at(0);
  };
  const json on_tpus = run("tpu/short-last-batch.yaml:bug");
  CHECK(on_tpus.at("weights").at("compiled_graphs") == 2);
  CHECK(on_tpus.at("ranks").at(0).at("memory").at("cuda_context_bytes") == 0);
  CHECK(run("ddp-one-node.yaml").at("weights").at("compiled_graphs").is_null());
}

TEST_CASE("explain codes lists every code with level and title and cause and fix") {
  const json codes = told("explain codes").at("codes");
  CHECK(codes.size() == 33);
  std::set<std::string> names;
  for (const json& code : codes) {
    INFO(code.dump());
    names.insert(code.at("code").get<std::string>());
    CHECK(code.at("level") == code.at("levels").at(0));
    for (const char* text : {"title", "cause", "fix"}) {
      CHECK(code.at(text).get<std::string>().size() > 15);
    }
    CHECK(code.at("cause").get<std::string>().find("Seen") == std::string::npos);
  }
  CHECK(names.size() == 33);
  const std::string text = run_program("explain codes").output;
  CHECK(text.find("LS101  error                  some rank never") != std::string::npos);
}

#ifdef LOCKSTEP_RANK_PROGRAM

TEST_CASE("a real run and its comparison keep to the schema") {
  const std::string scenario = scenarios + "accumulation.yaml:accumulated";
  const json executed = told("exec " + scenario);
  CHECK(executed.at("cases").at(0).at("comparison").at("equal") == true);
  const Folder folder;
  const std::string rank = std::string(LOCKSTEP_RANK_PROGRAM) + " " + scenario +
                           " --report-folder " + folder.path() + " & ";
  run_shell(
      "export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + $$ % 20000)); RANK=0 " +
      rank + "RANK=1 " + rank + " wait");
  const json compared = told("compare " + scenario + " --reports " + folder.path());
  CHECK(compared.at("command") == "compare");
  CHECK(compared.at("cases").at(0).contains("comparison"));
}

#endif

}  // namespace json_schema_test
