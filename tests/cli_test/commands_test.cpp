// The commands as a shell and a CI see them.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/cli_test/program.hpp"

using namespace lockstep::test;

namespace {

const std::string data = std::string(LOCKSTEP_SOURCE_DIR) + "/tests/data/";

const std::string message = R"yaml(
version: 1
cluster: {ranks: 2, network: {bandwidth: 1 GB/s, latency: 1 us}}
program:
  main:
    - kernel: 2 ms
    - let: {x: "full(4, 1.0)"}
    - if: rank == 0
      then: [{send: {tensor: x, dst: 1}}]
      else: [{recv: {tensor: x, src: 0}}]
)yaml";

}  // namespace

TEST_CASE("a program that ends exits 0, one that hangs 1") {
  CHECK(run_program("verify " + data + "ring.yaml:sum").code == 0);
  CHECK(run_program("verify " + data + "ring.yaml:guarded").code == 1);
  CHECK(run_program("run " + data + "ring.yaml:sum").code == 0);
}

TEST_CASE("without a case every case is told under its name") {
  const Ended ended = run_program("verify " + data + "ring.yaml");
  CHECK(ended.code == 1);
  for (const char* name : {"sum", "guarded", "unknown"}) {
    CHECK(ended.output.find("== " + data + "ring.yaml:" + name + " ==") != std::string::npos);
  }
}

TEST_CASE("test ends with the counts alone on a line") {
  const Ended ended = run_program("test " + data + "ring.yaml");
  INFO(ended.output);
  CHECK(ended.code == 0);
  CHECK(ended.output.ends_with("\n3 passed, 0 failed\n"));
}

TEST_CASE("an expectation that is not met fails the test and says how to repeat it") {
  const Folder folder;
  const std::string file = folder.write("a.yaml", message + "expect: [total_time < 1 ms]\n");
  const Ended ended = run_program("test " + folder.path());
  CHECK(ended.code == 1);
  CHECK(ended.output.find("repeat: lockstep test " + file + " --seed 0") != std::string::npos);
  CHECK(ended.output.ends_with("\n0 passed, 1 failed\n"));
}

TEST_CASE("a file that is no scenario fails the test and stops nothing") {
  const Folder folder;
  folder.write("a.yaml", "version: 7\n");
  folder.write("b.yaml", message);
  const Ended ended = run_program("test " + folder.path(), "2>/dev/null");
  CHECK(ended.code == 3);
  CHECK(ended.output.ends_with("\n1 passed, 1 failed\n"));
}

TEST_CASE("results are the same bytes for any number of jobs") {
  const Ended one = run_program("test " + data + " --jobs 1");
  const Ended four = run_program("test " + data + " --jobs 4");
  CHECK(one.output == four.output);
  CHECK(one.code == four.code);
}

TEST_CASE("JSON goes to a file whole, and is parsed back") {
  const Folder folder;
  const Ended ended = run_program("verify " + data + "ring.yaml:guarded --format json -o " +
                               folder.file("out.json"));
  CHECK(ended.code == 1);
  CHECK(ended.output.empty());
  const auto json = nlohmann::json::parse(folder.read("out.json"));
  CHECK(json.at("verdict") == "findings");
  CHECK(json.at("findings").at(0).at("code") == "LS101");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("a file that cannot be written is told") {
  const Ended ended = run_program("schema -o /nowhere/schema.json");
  CHECK(ended.code == 2);
  CHECK(ended.output.find("cannot write /nowhere/schema.json") != std::string::npos);
}

TEST_CASE("a timeline has a slice an operation, and an arrow from send to receive") {
  const Folder folder;
  const std::string file = folder.write("a.yaml", message);
  const Ended ended = run_program("run " + file + " --timeline " + folder.file("t.json"));
  INFO(ended.output);
  REQUIRE(ended.code == 0);
  const auto json = nlohmann::json::parse(folder.read("t.json"));
  std::map<std::string, int> phases;
  double kernel_us = 0;
  for (const auto& event : json.at("traceEvents")) {
    ++phases[event.at("ph")];
    if (event.at("ph") == "X" && event.at("name") == "timed" && event.at("pid") == 0) {
      kernel_us = event.at("dur");
    }
  }
  CHECK(kernel_us == Approx(2000));
  CHECK(phases["s"] == 1);
  CHECK(phases["f"] == 1);
  CHECK(phases["X"] >= 4);
}

TEST_CASE("settings and seed reach the scenario") {
  const Folder folder;
  const std::string file = folder.write(
      "a.yaml", "version: 1\ncluster: {ranks: 2, network: {bandwidth: 1 GB/s}}\n"
                "program: {main: [{kernel: 1 ms}]}\nexpect: [world_size == 5]\n");
  CHECK(run_program("test " + file).code == 1);
  CHECK(run_program("test " + file + " --set cluster.ranks=5 --seed 3").code == 0);
}

TEST_CASE("JUnit names every case") {
  const Ended ended = run_program("test " + data + "ring.yaml --format junit");
  CHECK(ended.code == 0);
  CHECK(ended.output.starts_with("<?xml version=\"1.0\""));
  CHECK(ended.output.find("tests=\"3\" failures=\"0\"") != std::string::npos);
}

TEST_CASE("the version and the schema are printed") {
  CHECK(run_program("--version").output.starts_with("lockstep 0."));
  CHECK(nlohmann::json::parse(run_program("schema").output).is_object());
}
