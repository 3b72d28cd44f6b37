// Ranks that are killed and started again for real: exec over several attempts.
#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/cli_test/program.hpp"

#ifdef LOCKSTEP_RANK_PROGRAM

using namespace lockstep::test;

namespace elastic_exec_test {

namespace {

std::string elastic_scenario(const std::string& name) {
  return std::string(LOCKSTEP_SOURCE_DIR) + "/scenarios/elastic/" + name;
}

Ended elastic_exec(const Folder& temporary, const std::string& arguments) {
  return run_program("exec " + arguments, "2>&1", "", "export TMPDIR=" + temporary.path() + "; ");
}

bool says(const Ended& ended, const std::string& text) {
  return ended.output.find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("exec starts killed ranks again, and they end with the simulated weights") {
  const Folder temporary;
  const Ended ended =
      elastic_exec(temporary, elastic_scenario("restart-without-checkpoint.yaml:resumed"));
  INFO(ended.output);
  CHECK(ended.code == 0);
  CHECK(says(ended, "outcome equal"));
  CHECK(says(ended, "calls equal"));
  CHECK(says(ended, "values equal"));
  CHECK(says(ended, "no findings"));
  CHECK(std::filesystem::is_empty(temporary.path()));
}

TEST_CASE("exec finds that a training begins anew after a restart") {
  const Folder temporary;
  const Ended ended =
      elastic_exec(temporary, elastic_scenario("restart-without-checkpoint.yaml:begins_anew"));
  INFO(ended.output);
  CHECK(ended.code == 1);
  CHECK(says(ended, "error[LS502]: after a restart the training begins anew: 10 optimizer steps"));
  CHECK(says(ended, "values equal"));
}

TEST_CASE("exec goes on with the ranks of the nodes that are left") {
  const Folder temporary;
  const Ended ended = elastic_exec(temporary, elastic_scenario("fewer-nodes.yaml:smaller_batch"));
  INFO(ended.output);
  CHECK(says(ended, "warning[LS309]"));
  CHECK(says(ended, "real run: 6 ranks"));
  CHECK(says(ended, "values equal"));
}

}  // namespace elastic_exec_test

#endif
