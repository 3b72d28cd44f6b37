// Files that a command writes must not be files that it reads, by whatever name.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "cli/command_line.hpp"
#include "tests/unit/temporary_place.hpp"

using namespace lockstep::cli;

namespace output_files_test {
using lockstep::test::TemporaryPlace;

namespace {

namespace fs = std::filesystem;

class Files {
 public:
  Files() {
    write("base.yaml", "version: 1\ncluster: {ranks: 2, network: {bandwidth: 1 GB/s}}\n");
    write("scenario.yaml", "include: base.yaml\nprogram:\n  main: [barrier: {}]\n");
    write("bad.yaml", "include: base.yaml\nprogram: 3\n");
  }
  std::string path(const std::string& name) const { return place_.path() + "/" + name; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
  }
  std::string read(const std::string& name) const {
    std::ifstream in(path(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }
  Answer run(const std::vector<std::string>& options,
             const std::string& scenario = "scenario.yaml") const {
    std::vector<std::string> arguments = {"run", path(scenario)};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return execute_command_line(arguments, {});
  }

 private:
  TemporaryPlace place_;
};

void check_refused(const Answer& answer, const std::string& what) {
  INFO(answer.text << answer.diagnostics);
  CHECK(answer.code == ExitCode::output_failed);
  CHECK(answer.diagnostics.find(what) != std::string::npos);
  CHECK(answer.diagnostics.find("name another file") != std::string::npos);
}

}  // namespace

TEST_CASE("a result does not overwrite the scenario or what it includes") {
  const Files files;
  const std::string scenario = files.read("scenario.yaml");
  const std::string base = files.read("base.yaml");
  fs::create_symlink(files.path("scenario.yaml"), files.path("link"));
  fs::create_hard_link(files.path("base.yaml"), files.path("hard"));
  for (const char* option : {"-o", "--timeline"}) {
    for (const char* name : {"scenario.yaml", "link", "./scenario.yaml"}) {
      check_refused(files.run({option, files.path(name)}), "it is the scenario");
    }
    for (const char* name : {"base.yaml", "hard"}) {
      check_refused(files.run({option, files.path(name)}), "a file that the scenario reads");
    }
  }
  // Also where the result is that the scenario is wrong.
  check_refused(files.run({"--format", "json", "-o", files.path("base.yaml")}, "bad.yaml"),
                "a file that the scenario reads");
  CHECK(files.read("scenario.yaml") == scenario);
  CHECK(files.read("base.yaml") == base);
}

TEST_CASE("two results do not go to one file") {
  const Files files;
  check_refused(files.run({"-o", files.path("out"), "--timeline", files.path("./out")}),
                "-o and --timeline name the same file");
  CHECK_FALSE(fs::exists(files.path("out")));
  files.write("one", "");
  fs::create_hard_link(files.path("one"), files.path("other"));
  check_refused(files.run({"-o", files.path("one"), "--timeline", files.path("other")}),
                "name the same file");
}

TEST_CASE("a result does not overwrite values or a calibration") {
  const Files files;
  files.write("values.csv", "x,y\n1,2\n3,4\n");
  files.write("with_values.yaml",
              "version: 1\ncluster: {preset: cpu}\n"
              "trainer: {accelerator: cpu, devices: 2, strategy: ddp, max_steps: 1}\n"
              "data: {train: {values: {csv: values.csv}, batch_size: 1}}\n");
  check_refused(files.run({"-o", files.path("values.csv")}, "with_values.yaml"),
                "a file that the scenario reads");
  files.write("machine.json", "{}");
  check_refused(
      files.run({"--calibration", files.path("machine.json"), "-o", files.path("machine.json")}),
      "it is the calibration");
  CHECK(files.read("values.csv") == "x,y\n1,2\n3,4\n");
  CHECK(files.read("machine.json") == "{}");
  CHECK(files.run({"-o", files.path("result")}).code == ExitCode::ok);
}

TEST_CASE("what is no file is refused as a scenario or values by its kind") {
  const Files files;
  REQUIRE(mkfifo(files.path("pipe").c_str(), 0600) == 0);
  for (const auto& [name, kind] : {std::pair{"pipe", "a pipe"}, {".", "a folder"}}) {
    const Answer answer = files.run({}, name);
    CHECK(answer.code == ExitCode::bad_input);
    CHECK(answer.diagnostics.find(std::string("this is ") + kind) != std::string::npos);
    files.write("includes.yaml", std::string("include: ") + name + "\nprogram: {main: []}\n");
    CHECK(files.run({}, "includes.yaml").diagnostics.find(std::string("this is ") + kind) !=
          std::string::npos);
    files.write("with_values.yaml",
                std::string("version: 1\ncluster: {preset: cpu}\n"
                            "trainer: {accelerator: cpu, devices: 2, strategy: ddp}\n"
                            "data: {train: {values: {csv: ") +
                    name + "}, batch_size: 1}}\n");
    CHECK(files.run({}, "with_values.yaml").diagnostics.find(std::string("this is ") + kind) !=
          std::string::npos);
  }
}

}  // namespace output_files_test
