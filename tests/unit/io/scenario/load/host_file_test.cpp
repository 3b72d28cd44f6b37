#include "io/scenario/load/host_file.hpp"

#include <catch2/catch.hpp>
#include <map>

using namespace lockstep;

namespace host_file_test {

namespace {

LoadedScenarios loaded(const std::string& hosts,
                       const std::string& arguments = "np: 3, hostfile: f") {
  const std::map<std::string, std::string> files = {
      {"a/s.yaml", "version: 1\ntrainer: {devices: 1}\nlauncher: {mpirun: {" + arguments + "}}\n"},
      {"a/f", hosts}};
  return load_scenario_file(
      "a/s.yaml", {}, [&](const std::string& name, size_t) -> std::variant<std::string, FileError> {
        const auto found = files.find(name);
        return found == files.end()
                   ? std::variant<std::string, FileError>(FileError{"no such file"})
                   : found->second;
      });
}

std::string hosts_read(const std::string& text) {
  const LoadedScenarios scenarios = loaded(text);
  REQUIRE(scenarios.ok());
  return text_of(*scenarios.scenarios.front().launcher->find("hosts"));
}

std::string complaint(const LoadedScenarios& scenarios) {
  return scenarios.ok() ? "" : scenarios.diagnostics.front().message;
}

}  // namespace

TEST_CASE("a hostfile has a host and its slots per line") {
  CHECK(hosts_read("host1 slots=2\nhost2 slots=1 max_slots=4\n") == "[host1:2, host2:1]");
  CHECK(hosts_read("# nodes\n\nhost1   slots=2 # fast\r\n") == "[host1:2]");
}

TEST_CASE("a hostfile that cannot be read says where") {
  CHECK(complaint(loaded("host1\n")) == "a/f, line 1: the host host1 has no slots=N");
  CHECK(complaint(loaded("host1 slots=1\nhost2 cores=1\n")) ==
        "a/f, line 2: `cores=1` is not slots=N");
  CHECK(complaint(loaded("", "np: 1, hostfile: g")) == "a/g: no such file");
  CHECK(complaint(loaded("", "np: 1, hostfile: f, hosts: [1]")) ==
        "`hosts` and `hostfile` cannot be combined");
}

TEST_CASE("the content of a hostfile is part of the scenario") {
  const auto digest = [](const std::string& text) { return loaded(text).scenarios.front().digest; };
  CHECK(digest("a slots=1\n") != digest("a slots=2\n"));
  CHECK(digest("a slots=1\n") == digest("a slots=1\n"));
}

}  // namespace host_file_test
