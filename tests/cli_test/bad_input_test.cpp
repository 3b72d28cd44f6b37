// Whatever a file holds, the program says what is wrong with it, where, and exits 3 (4, 5).
#include <catch2/catch.hpp>

#include "tests/cli_test/program.hpp"

using namespace lockstep::test;

namespace {

void refused(const std::string& text, const std::string& message, int code = 3) {
  const Folder folder;
  const std::string file = folder.write("scenario.yaml", text);
  for (const char* command : {"run", "verify"}) {
    const Ended ended = run_program(std::string(command) + " " + file);
    INFO(ended.output);
    CHECK(ended.code == code);
    CHECK(ended.output.find(message) != std::string::npos);
    CHECK(ended.output.size() < 20'000);
  }
}

const std::string bare = "version: 1\ncluster: {ranks: 2, network: {bandwidth: 1 GB/s}}\n";

}  // namespace

TEST_CASE("a missing file is told by its name") {
  const Ended ended = run_program("verify /nowhere/train.yaml");
  CHECK(ended.code == 3);
  CHECK(ended.output.find("/nowhere/train.yaml") != std::string::npos);
}

TEST_CASE("a folder is no scenario") {
  const Folder folder;
  CHECK(run_program("run " + folder.path()).code == 3);
}

TEST_CASE("a folder without scenarios does not pass") {
  const Folder folder;
  CHECK(run_program("test " + folder.path()).code == 3);
}

TEST_CASE("200,000 brackets are refused") {
  refused(std::string(200'000, '['), "error");
  refused("version: 1\nexpect: " + std::string(200'000, '[') + "\n", "error");
}

TEST_CASE("sizes that are no numbers are refused") {
  refused("version: 1\nmodel: {layers: [{Linear: [nan, 2]}], input: [4]}\n", "nan");
  refused("version: 1\ncluster: {ranks: nan}\nprogram: {main: [barrier]}\n", "nan");
  refused(bare + "program: {main: [{kernel: nan}]}\n", "nan");
}

TEST_CASE("no ranks, or more than there can be, are refused") {
  refused("version: 1\ncluster: {ranks: 0}\nprogram: {main: [barrier]}\n", "ranks");
  refused("version: 1\ncluster: {ranks: 1000000000000}\nprogram: {main: [barrier]}\n", "ranks");
  refused("version: 1\ntrainer: {devices: 1000000000000, max_steps: 1}\n", "1000000000000");
}

TEST_CASE("an unknown strategy is told with the nearest spelling") {
  refused("version: 1\ntrainer: {strategy: dpp, devices: 2, max_steps: 1}\n", "dpp");
}

TEST_CASE("an endless loop is undecided") {
  refused(bare + "program:\n  main:\n    - {repeat: 1_000_000_000, do: [{let: {x: 1}}]}\n",
          "endless loop", 4);
}

TEST_CASE("times beyond 64 bits are refused") {
  refused(bare + "program:\n  main:\n    - {repeat: 100, do: [{kernel: 100 d}]}\n", "64 bits");
}

TEST_CASE("a case that is not there is told") {
  const Folder folder;
  const std::string file =
      folder.write("a.yaml", "version: 1\ncases:\n  one: {trainer: {devices: 1}}\n");
  const Ended ended = run_program("run " + file + ":two");
  CHECK(ended.code == 3);
  CHECK(ended.output.find("no case `two`") != std::string::npos);
}

TEST_CASE("bytes that are no text are refused") {
  refused(std::string("version: 1\n\x00\x01\xff\xfe", 15), "error");
}
