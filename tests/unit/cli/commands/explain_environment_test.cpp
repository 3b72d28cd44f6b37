#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/command_line.hpp"

using namespace lockstep;
using namespace lockstep::cli;

namespace explain_environment_test {

namespace {

const std::string guide = LOCKSTEP_SOURCE_DIR "/scenarios/guide-environment.yaml";

Answer explained(std::vector<std::string> more) {
  std::vector<std::string> arguments = {"explain", "--env"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return execute_command_line(arguments, Style{});
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the environment of every rank is a table, with what all share before it") {
  const Answer answer = explained({guide + ":torchrun"});
  CHECK(answer.code == ExitCode::ok);
  CHECK(has(answer.text, "3 processes on 1 node, started by torchrun"));
  CHECK(has(answer.text, "  rank  node  device  LOCAL_RANK  RANK  ROLE_RANK\n"));
  CHECK(has(answer.text, "  2     0     GPU 2   2           2     2\n"));
  CHECK(has(answer.text, "torchrun --nproc-per-node=3 train.py"));
}

TEST_CASE("the environment of every rank is an object of JSON") {
  const Answer answer = explained({guide + ":slurm", "--format", "json"});
  const auto json = nlohmann::json::parse(answer.text);
  REQUIRE(json["ranks"].size() == 3);
  CHECK(json["world_size"] == 3);
  CHECK(json["ranks"][1]["environment"]["SLURM_PROCID"] == "1");
  CHECK(json["ranks"][1]["device"] == "GPU 1");
}

TEST_CASE("what the scenario's own environment contradicts is reported beside the table") {
  const Answer answer = explained({guide + ":as_in_the_guide"});
  CHECK(answer.code == ExitCode::findings);
  CHECK(has(answer.text, "started by lightning"));
  CHECK(has(answer.diagnostics,
            "error LS501: NODE_RANK is 1 on rank 1 (should be 0), 2 on rank 2 (should be 0)"));
  CHECK(has(answer.diagnostics,
            "error LS501: LOCAL_RANK is 0 on rank 1 (should be 1), 0 on rank 2 (should be 2)"));
}

TEST_CASE("--env needs a scenario") {
  CHECK(explained({}).code == ExitCode::usage);
  CHECK(explained({"/nowhere.yaml"}).code == ExitCode::bad_input);
}

}  // namespace explain_environment_test
