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

TEST_CASE("a missing file is reported by its name") {
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
  // An expression of a program is evaluated when the program reaches it.
  refused(bare + "program: {main: [{kernel: nan}]}\n", "nan", 1);
}

TEST_CASE("no ranks, or more than there can be, are refused") {
  refused("version: 1\ncluster: {ranks: 0}\nprogram: {main: [barrier]}\n", "ranks");
  refused("version: 1\ncluster: {ranks: 1000000000000}\nprogram: {main: [barrier]}\n", "ranks");
  refused("version: 1\ntrainer: {devices: 1000000000000, max_steps: 1}\n", "1000000000000");
}

TEST_CASE("an unknown strategy is reported with the nearest spelling") {
  refused("version: 1\ntrainer: {strategy: dpp, devices: 2, max_steps: 1}\n", "dpp");
}

TEST_CASE("every refusal has a place and a remedy") {
  refused("version: 1\ntrainer: {devices: -3, strategy: ddp}\n", "= write devices: 1");
  refused("version: 1\ncluster: {ranks: -4}\nprogram: {main: [barrier]}\n",
          "= write a number from 1 to");
  refused("version: 2\n", "= write `version: 1`");
  refused("seed_everything: 1\n", "scenario.yaml:1:1");
  refused("version: 1\ncluster:\n\tranks: 2\n", "scenario.yaml:3:1");
  refused("version: 1\ncluster: {ranks: 2\nprogram: {main: [barrier]}\n",
          "the `{` is never closed");
  refused("version: 1\nprogram: {main: [barrier}\n", "scenario.yaml:2:25");
  refused("version: 1\nexpect: " + std::string(100, '[') + "\n", "never closed");
  refused("version: 1\nexpect: " + std::string(100, '[') + std::string(100, ']') + "\n",
          "nested deeper than 64 levels");
  refused("version: 1\n#" + std::string(4 << 20, 'x') + "\n", "larger than 4 MiB");
}

TEST_CASE("an expectation that nothing can meet or miss is refused with its place") {
  const auto expects = [](const std::string& text, const std::string& message) {
    refused(
        "version: 1\ntrainer: {devices: 2, strategy: ddp, max_steps: 2}\nprogram:\n"
        "  training_step: [{log: {name: train_loss, value: loss}}]\nexpect: [\"" +
            text + "\"]\n",
        message);
  };
  expects("finding LS999", "scenario.yaml:5:19");
  expects("no_finding LS110", "no finding has the code `LS110`");
  expects("metric train_lass > 0", "did you mean `train_loss`?");
  expects("step_time < 3 GiB", "`step_time` is a time");
  expects("mfu > 0 or memory.peak < 3 s", "`<` does not take bytes and time");
  expects("world_size == 2 +- 3 ms", "scenario.yaml:5");
  expects("steps == 2 on rank 7", "ranks are 0 to 1");
  expects("transfers.all_redcue == 3", "did you mean `all_reduce`?");
  for (const std::string result : {"step_time.low", "bubble"}) {
    refused("version: 1\ntrainer: {max_steps: 1}\nexpect: [\"" + result + " == " + result + "\"]\n",
            "`" + result + "` is not available", 5);
  }
  refused("version: 1\nverify: {ignore: {LS999: noise}}\n", "no finding has the code `LS999`");
}

TEST_CASE("expectations of a case that could not run are not judged") {
  const Folder folder;
  const std::string file =
      folder.write("a.yaml",
                   "version: 1\ntrainer: {devices: 2, strategy: fsdp, max_steps: 2}\n"
                   "expect: [steps == 2, no_hang, no_findings, finding LS101]\n");
  for (const char* command : {"run ", "verify ", "test "}) {
    const Ended ended = run_program(command + file);
    INFO(ended.output);
    CHECK(ended.code == 5);
    CHECK(ended.output.find("not met") == std::string::npos);
  }
}

TEST_CASE("what is sound is not refused with it") {
  const Folder folder;
  const std::string file = folder.write(
      "a.yaml",
      "version: 1\ntrainer: {devices: 2, strategy: ddp, max_steps: 2}\nprogram:\n"
      "  training_step: [{log: {name: train_loss, value: loss}}]\n"
      "expect: [metric train_loss > 0, \"step_time > 0\", \"1 / (steps - world_size + 1) == 1\","
      " \"transfers.all_reduce >= 1 on rank 1\", \"strategy == 'ddp'\", devices == 2 +- 10 %]\n");
  const Ended ended = run_program("test " + file);
  INFO(ended.output);
  CHECK(ended.code == 0);
}

TEST_CASE("a group of all ranks is written `all`") {
  const Folder folder;
  const std::string file = folder.write(
      "a.yaml",
      "version: 1\ncluster: {ranks: 3, network: {bandwidth: 1 GB/s}}\nprogram:\n  main:\n"
      "    - new_group: {ranks: all, as: everyone}\n    - let: {x: \"full(1, 1.0)\"}\n"
      "    - all_reduce: {tensor: x, group: everyone, as: y}\n"
      "    - assert: sum(y) == 3\nexpect: [no_findings, no_hang]\n");
  CHECK(run_program("test " + file).code == 0);
  CHECK(run_program("test " + file + " --world threads").code == 0);
}

TEST_CASE("an endless loop is undecided") {
  refused(bare + "program:\n  main:\n    - {repeat: 1_000_000_000, do: [{let: {x: 1}}]}\n",
          "endless loop", 4);
}

TEST_CASE("a size that is too large is refused in both worlds alike") {
  const Folder folder;
  const std::string file =
      folder.write("a.yaml", bare + "program: {main: [{all_reduce: {elements: 1e18}}]}\n");
  const Ended simulated = run_program("verify " + file);
  const Ended threads = run_program("verify " + file + " --world threads");
  CHECK(simulated.code == 3);
  CHECK(threads.code == 3);
  CHECK(simulated.output == threads.output);
}

TEST_CASE("times beyond 64 bits are refused") {
  refused(bare + "program:\n  main:\n    - {repeat: 100, do: [{kernel: 100 d}]}\n", "64 bits");
}

TEST_CASE("a case that is not there is reported") {
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
