// The commands as a shell and a CI see them.
#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli_test/program.hpp"

using namespace lockstep::test;

namespace commands_test {

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

TEST_CASE("without a case every case is reported under its name") {
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
  CHECK(run_program("verify " + data + "ring.yaml --jobs 1").output ==
        run_program("verify " + data + "ring.yaml --jobs 3").output);
}

// One case on several threads: the next order of events, and the next suggestion, are begun ahead.
TEST_CASE("what is begun ahead changes no byte") {
  const std::string scenarios = std::string(LOCKSTEP_SOURCE_DIR) + "/scenarios/";
  for (const char* command : {"verify parameter-server/asynchronous.yaml:equal_workers",
                              "run ddp-one-node.yaml", "run too-large-for-the-device.yaml"}) {
    const std::string text = command;
    const size_t space = text.find(' ');
    const std::string start = text.substr(0, space + 1) + scenarios + text.substr(space + 1);
    const Ended one = run_program(start + " --format json --jobs 1");
    CHECK(run_program(start + " --format json --jobs 2").output == one.output);
    CHECK(run_program(start + " --format json --jobs 7").output == one.output);
    CHECK_THAT(one.output,
               Catch::Contains(text.starts_with("run") ? "\"advice\"" : "\"schedules\""));
  }
}

TEST_CASE("JSON goes to a file whole, and is parsed back") {
  const Folder folder;
  const Ended ended = run_program("verify " + data + "ring.yaml:guarded --format json -o " +
                                  folder.file("out.json"));
  CHECK(ended.code == 1);
  CHECK(ended.output.empty());
  const auto json = nlohmann::json::parse(folder.read("out.json"));
  CHECK(json.at("verdict") == "findings");
  CHECK(json.at("cases").at(0).at("findings").at(0).at("code") == "LS101");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("a file that cannot be written is reported") {
  for (const char* arguments : {"schema -o ", "verify ring.yaml:sum -o ",
                                "run ring.yaml:sum --timeline ", "test ring.yaml --junit "}) {
    const Ended ended = run_program(std::string(arguments) + "/nowhere/out", "2>&1", data);
    INFO(arguments << ended.output);
    CHECK(ended.code == 74);
    CHECK(ended.output.find("cannot write /nowhere/out: No such file") != std::string::npos);
    CHECK(ended.output.find("= make its folder first") != std::string::npos);
  }
}

TEST_CASE("a standard output that takes nothing is reported and is no success") {
  for (const char* redirect : {"2>&1 >/dev/full", "2>&1 >&-"}) {
    for (const char* arguments : {"verify ring.yaml:sum", "test ring.yaml", "schema"}) {
      const Ended ended = run_program(arguments, redirect, data);
      INFO(arguments << " " << redirect << ended.output);
      CHECK(ended.code == 74);
      CHECK(ended.output.find("cannot write standard output") != std::string::npos);
    }
  }
}

TEST_CASE("what fails to be written leaves what was there, and nothing beside it") {
  const Folder folder;
  const std::string file = folder.write("out.json", "before");
  // 512 bytes a block: the limit is reached in the middle of the schema.
  const Ended ended = run_program("schema -o " + file, "2>&1", "", "ulimit -f 1;");
  INFO(ended.output);
  CHECK(ended.code == 74);
  CHECK(folder.read("out.json") == "before");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("a time limit holds while a large world is built and within statements that only count") {
  const Folder folder;
  const std::string wide = folder.write(
      "wide.yaml",
      "version: 1\ncluster: {ranks: 200_000, network: {bandwidth: 1 GB/s}}\n"
      "program: {main: [{all_reduce: {elements: 100}}]}\nexpect: [total_time < 1 s]\n");
  const std::string loop =
      folder.write("loop.yaml",
                   "version: 1\ncluster: {ranks: 1, network: {bandwidth: 1 GB/s}}\n"
                   "program: {main: [{repeat: 9_000_000, do: [{append: {list: 1}}]}]}\n");
  for (const std::string& file : {wide, loop}) {
    for (const char* command : {"run ", "verify ", "test "}) {
      // The shorter limit has passed before the first run begins.
      for (const char* limit : {" --time-limit 0.001", " --time-limit 0.000001"}) {
        const Ended ended = run_program(command + file + limit);
        INFO(command << file << limit << ended.output);
        CHECK(ended.code == 4);
        CHECK(ended.output.find("the time limit was reached") != std::string::npos);
        CHECK(ended.output.find("not met") == std::string::npos);
      }
    }
  }
}

TEST_CASE("progress is shown on standard error alone, once it takes long") {
  const Folder folder;
  const std::string file =
      folder.write("loop.yaml",
                   "version: 1\ncluster: {ranks: 16, network: {bandwidth: 1 GB/s}}\n"
                   "program: {main: [{repeat: 9_999_990, do: [{let: {x: 1}}]}]}\n");
  const std::string command = "run " + file + " --time-limit 2";
  const Ended shown = run_program(command + " --progress", "2>&1 >/dev/null");
  CHECK(shown.output.find(" s · " + file) != std::string::npos);
  CHECK(shown.output.starts_with("\r"));
  CHECK(shown.output.ends_with("\r\033[K"));
  CHECK(run_program(command, "2>&1 >/dev/null").output.empty());
  const Ended quick = run_program("run " + data + "ring.yaml:sum --progress", "2>&1 >/dev/null");
  CHECK(quick.output.empty());
}

TEST_CASE("a run on threads gives the same bytes again") {
  const std::string text = "verify " + data + "ring.yaml:sum --world threads";
  CHECK(run_program(text).output == run_program(text).output);
  const std::string json = "verify " + data + "ring.yaml:guarded --world threads --format json";
  CHECK(run_program(json).output == run_program(json).output);
  // Steps that are not alike, and an MFU that only this machine's clock would give.
  for (const char* file : {"guarded-all-gather.yaml", "dp-versus-ddp-transfers.yaml"}) {
    const std::string training = "verify " LOCKSTEP_SOURCE_DIR "/scenarios/" + std::string(file) +
                                 " --world threads --format json";
    const std::string first = run_program(training).output;
    for (int turn = 0; turn < 4; ++turn) {
      CHECK(run_program(training).output == first);
    }
  }
}

TEST_CASE("a test of covering cases leaves out what others do, and says so") {
  const Folder folder;
  const std::string text =
      "version: 1\ncluster: {ranks: 2, network: {bandwidth: 1 GB/s, latency: 1 us}}\n"
      "program: {main: [{all_reduce: {elements: 16}}]}\ncases:\n  first: {}\n"
      "  again: {cluster: {ranks: 3}}\n"
      "  other: {program: {main: [{all_gather: {elements: 16, as: x}}]}}\n";
  const std::string file = folder.write("a.yaml", text);
  const Ended ended = run_program("test " + file + " --covering --world threads");
  CHECK(ended.code == 0);
  CHECK(ended.output.find("a.yaml:again  skipped        other cases cover what it does") !=
        std::string::npos);
  CHECK(ended.output.ends_with("2 passed, 0 failed\n"));
  CHECK(run_program("test " + file).output.ends_with("3 passed, 0 failed\n"));
}

TEST_CASE("a test of covering cases in processes leaves out what no rank program can run") {
  const std::string file = LOCKSTEP_SOURCE_DIR "/scenarios/tpu/rank-zero-barrier.yaml";
  const Ended ended = run_program("test " + file + " --covering --world processes");
  INFO(ended.output);
  CHECK(ended.code == 0);
  CHECK(ended.output.find("skipped        strategies of TPUs cannot be executed") !=
        std::string::npos);
  CHECK(ended.output.ends_with("0 passed, 0 failed\n"));
}

TEST_CASE("numbers that are none are reported in words") {
  const auto told = [](const std::string& option, const std::string& text) {
    const Ended ended = run_program("run " + data + "ring.yaml " + option);
    INFO(ended.output);
    CHECK(ended.code == 2);
    CHECK(ended.output.find(text) != std::string::npos);
    CHECK(ended.output.size() < 300);
  };
  told("--time-limit nan", "takes seconds above 0, such as 2.5, not `nan`");
  told("--time-limit -1", "takes seconds above 0");
  told("--seed -1", "takes a whole number from 0 on, not `-1`");
  told("--jobs 0", "takes a whole number from 1 to 1024, not `0`");
  CHECK(run_program("run " + data + "ring.yaml:sum --time-limit 1e300").code == 0);
}

TEST_CASE("a JUnit report can be written beside the table") {
  const Folder folder;
  const Ended ended =
      run_program("test " + data + "ring.yaml --junit " + folder.file("report.xml"));
  CHECK(ended.code == 0);
  CHECK(ended.output.ends_with("\n3 passed, 0 failed\n"));
  CHECK(folder.read("report.xml").starts_with("<?xml version=\"1.0\""));
}

TEST_CASE("a timeline has a slice per operation, and an arrow from send to receive") {
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

TEST_CASE("a timeline of steps that a training does not have is refused") {
  const Folder folder;
  const std::string file =
      folder.write("a.yaml",
                   "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\nmodel: {preset: resnet18}\n"
                   "trainer: {accelerator: gpu, devices: 2, max_steps: 200}\n"
                   "data: {train: {samples: 4000, batch_size: 2}}\n");
  const auto run = [&](const std::string& steps) {
    return run_program(
        "run " + file + " --timeline " + folder.file("t.json") + " --timeline-steps " + steps,
        "2>&1");
  };
  const Ended behind = run("200-203");
  CHECK(behind.code == 2);
  CHECK(behind.output.find("error: --timeline-steps 200-203: the run ends with step 199; no "
                           "timeline is written") != std::string::npos);
  CHECK(folder.read("t.json").empty());
  const Ended over = run("198-203");
  CHECK(over.code == 0);
  CHECK(over.output.find("note: the run ends with step 199, before step 203") != std::string::npos);
  CHECK(folder.read("t.json").find("\"step 198\"") != std::string::npos);
  CHECK(folder.read("t.json").find("\"step 150\"") == std::string::npos);
}

TEST_CASE("settings and seed reach the scenario") {
  const Folder folder;
  const std::string file =
      folder.write("a.yaml",
                   "version: 1\ncluster: {ranks: 2, network: {bandwidth: 1 GB/s}}\n"
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

TEST_CASE("drawn faults are printed as the lines that repeat them") {
  const Folder folder;
  const std::string file = folder.write("a.yaml", message);
  const std::string command = "verify " + file + " --draw-faults 2 --seed 3";
  const Ended drawn = run_program(command);
  INFO(drawn.output);
  CHECK(drawn.output == run_program(command).output);
  const std::string head = "drawn from seed 3; add these lines to repeat it:\n";
  REQUIRE(drawn.output.starts_with(head));
  const std::string lines =
      drawn.output.substr(head.size(), drawn.output.find("\n\n") + 1 - head.size());
  const Ended repeated = run_program("verify " + folder.write("b.yaml", message + lines));
  CHECK(repeated.code == drawn.code);
  const auto json =
      nlohmann::json::parse(run_program(command + " --format json", "2>/dev/null").output);
  CHECK(json.at("cases").at(0).at("drawn_faults").size() == 2);
  CHECK(run_program("verify " + folder.file("b.yaml") + " --draw-faults 1").code == 2);
}

TEST_CASE("a fault that struck nothing is reported in text, in JSON and by test") {
  const Folder folder;
  const std::string file =
      folder.write("a.yaml", message + "faults: [{lost_message: {rank: 0, call: 9}}]\n");
  for (const char* command : {"run ", "verify ", "test ", "verify --format json "}) {
    const Ended ended = run_program(command + file);
    CHECK(ended.code == 0);
    CHECK(ended.output.find("fault 1, `lost_message`, never took effect on rank 0") !=
          std::string::npos);
  }
}

// 18 calls precede the first bucket, two more the second (DDP rebuilds its buckets), and a
// broadcast each of them; between two come the 50 of a validation: 19, 19 + 50 + 1 + 2 + 1, and 73
// + 50 + 2.
TEST_CASE("collectives are numbered as the training calls them, where some were left out") {
  const Ended ended = run_program("run -v " + std::string(LOCKSTEP_SOURCE_DIR) +
                                  "/scenarios/validation-in-each-step.yaml");
  INFO(ended.output);
  CHECK(ended.code == 0);
  CHECK(ended.output.find("repeat earlier ones, and were not simulated") != std::string::npos);
  for (const char* number : {"19 ", "73 ", "125 "}) {
    CHECK(ended.output.find(std::string("\n  world      ") + number) != std::string::npos);
  }
  const size_t third = ended.output.find("\n  world      125 ");
  REQUIRE(third != std::string::npos);
  CHECK(ended.output.substr(third, 60).find("all_reduce sum fp32 [36]") != std::string::npos);
}

}  // namespace commands_test
