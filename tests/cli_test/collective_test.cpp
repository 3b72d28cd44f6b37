// `lockstep collective` as a user meets it.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/cli_test/program.hpp"

using namespace lockstep::test;

namespace collective_test {

namespace {

const std::string measured = "collective all_reduce --cluster dgx-a100 --against ";

void refused(const std::string& arguments, const std::string& message, int code) {
  const Ended ended = run_program("collective " + arguments);
  INFO(ended.output);
  CHECK(ended.code == code);
  CHECK(ended.output.find(message) != std::string::npos);
}

}  // namespace

TEST_CASE("collective prints a row of nccl-tests for each size, with what NCCL chooses") {
  const Ended ended = run_program(
      "collective all_reduce --cluster dgx-a100 --sizes 8B..1GiB --uncorrected --format json");
  REQUIRE(ended.code == 0);
  const auto answer = nlohmann::json::parse(ended.output);
  CHECK(answer["ranks"] == 8);
  REQUIRE(answer["rows"].size() == 28);
  const auto& small = answer["rows"].front();
  CHECK(small["algorithm"] == "Ring LL");
  CHECK(small["time_s"].get<double>() == Approx(15e-6).epsilon(1e-4));  // 6.6 + 14 x 0.6 us
  const auto& large = answer["rows"].back();
  CHECK(large["algorithm"] == "Ring Simple");
  // 8.4 + 14 x 3.4 us, and 1 GiB at 240 x 8/14 GB/s.
  CHECK(large["time_s"].get<double>() == Approx(56e-6 + 1073741824 / (240e9 * 8 / 14)));
}

TEST_CASE("collective obeys NCCL's variables, and names those that have no effect") {
  const Ended ended = run_program(
      "collective all_reduce --cluster dgx-h100 --sizes 1GiB --env NCCL_ALGO=Tree "
      "--env NCCL_PROTO=Simple --env NCCL_DEBUG=INFO");
  CHECK(ended.code == 0);
  CHECK(ended.output.find("Tree Simple") != std::string::npos);
  CHECK(ended.output.find("NCCL_DEBUG is not modelled") != std::string::npos);
}

TEST_CASE("collective compares with what nccl-tests printed") {
  const Folder folder;
  const std::string file = folder.write(
      "nccl.txt",
      "#  size count type redop root time algbw busbw\n"
      "   8 2 float sum -1 30.0 0.00 0.00 0\n   1048576 262144 float sum -1 60.0 0 0 0\n");
  const Ended ended = run_program(measured + file + " --uncorrected --format json");
  REQUIRE(ended.code == 0);
  const auto answer = nlohmann::json::parse(ended.output);
  CHECK(answer["rows"][0]["error"].get<double>() == Approx(0.5).epsilon(1e-4));  // 15 for 30 us
  CHECK(answer["median_error_below_64KiB"].get<double>() == Approx(0.5).epsilon(1e-4));
}

TEST_CASE("collective says that it extrapolates") {
  const Ended ended = run_program("collective all_reduce --cluster dgx-h100 --nodes 128");
  CHECK(ended.code == 0);
  CHECK(ended.output.find("extrapolation: 1024 ranks on 128 nodes") != std::string::npos);
}

TEST_CASE("collective refuses what it cannot answer, with a remedy") {
  refused("", "a collective is missing", 2);
  refused("all_reduce", "--cluster is missing", 2);
  refused("allreduced --cluster dgx-a100", "did you mean `all_reduce`?", 2);
  refused("all_reduce --cluster dgx-a100 --sizes 4KiB..8B", "begins above its end", 2);
  refused("all_reduce --cluster dgx-a100 --sizes 0B", "not from 1B", 2);
  refused("all_reduce --cluster dgx-a100 --env NCCL_ALGO", "not a variable with its value", 2);
  refused("all_reduce --cluster dgx-a10", "did you mean `dgx-a100`?", 3);
  refused("all_reduce --cluster cpu", "the cluster has no GPUs", 3);
  refused("all_reduce --cluster dgx-a100 --ranks 9", "do not fit", 3);
  refused("all_reduce --cluster dgx-a100 --nodes 2 --ranks 9", "spread evenly", 3);
  refused("all_reduce --cluster dgx-a100 --env NCCL_ALGO=Rong", "`Rong` is unknown", 3);
  refused("all_reduce --cluster dgx-a100 --against /nowhere", "cannot be read", 3);
  const Folder folder;
  const std::string file = folder.write("bad.csv", "size_bytes,time_us\n8,soon\n");
  refused("all_reduce --cluster dgx-a100 --against " + file, "bad.csv:2:3", 3);
}

}  // namespace collective_test
