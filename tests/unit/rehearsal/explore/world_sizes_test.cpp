// verify.world_sizes are numbers of ranks; sizes that cannot be checked are reported, never
// dropped.
#include <catch2/catch.hpp>

#include "cli/render/render.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace world_sizes_test {

namespace {

Rehearsal only(const std::string& text) { return std::move(rehearsed(text).front().result); }

// `devices` a node; the program is `statements` of training_step, in flow style.
std::string training(int nodes, int devices, const std::string& sizes,
                     const std::string& statements = "[forward]", const std::string& more = "") {
  return "version: 1\ncluster: {preset: dgx-a100, nodes: " + std::to_string(nodes) +
         "}\ntrainer: {accelerator: gpu, devices: " + std::to_string(devices) +
         ", num_nodes: " + std::to_string(nodes) +
         ", strategy: ddp, max_steps: 1}\ndata: {train: {samples: 64}}\nprogram: {training_step: " +
         statements + "}\nverify: {world_sizes: " + sizes + "}\n" + more;
}

bool has(const Rehearsal& rehearsal, const std::string& code) {
  return std::any_of(rehearsal.findings.begin(), rehearsal.findings.end(),
                     [&](const Finding& finding) { return finding.code == code; });
}

}  // namespace

TEST_CASE("a world size beyond the cluster's GPUs grows the cluster by nodes") {
  const Rehearsal ran = only(training(1, 8, "[16]", "[{if: rank < 8, then: [barrier]}, forward]"));
  CHECK(ran.coverage.world_sizes == std::vector<int32_t>{8, 16});
  CHECK(ran.coverage.complete);
  CHECK(has(ran, "LS101"));  // ranks 8 to 15 do not come to the barrier
  CHECK(render_verify(ran, Style{}).find("16 ranks as 2 nodes of 8") != std::string::npos);
}

TEST_CASE("world sizes count ranks, also where the scenario has several nodes") {
  const Rehearsal ran = only(training(2, 8, "[2, 8, 12, 16, 8]"));
  CHECK(ran.coverage.world_sizes == std::vector<int32_t>{16, 2, 8, 12});
  CHECK(exit_code_of(ran, false) == ExitCode::ok);
  const std::string text = render_verify(ran, Style{});
  CHECK(text.find("12 ranks as 2 nodes of 6") != std::string::npos);
  CHECK(text.find("2 ranks as") == text.find("2 ranks as 2 nodes of 6"));  // on one node
}

TEST_CASE("a bare program grows over nodes") {
  const std::string text =
      "version: 1\ncluster: {preset: dgx-a100, nodes: 1, ranks: 8}\n"
      "program: {main: [{if: rank < 8, then: [barrier]}]}\nverify: {world_sizes: [16]}\n";
  const Rehearsal ran = only(text);
  CHECK(ran.coverage.world_sizes == std::vector<int32_t>{8, 16});
  CHECK(has(ran, "LS101"));
}

TEST_CASE("a world size that cannot be looked at leaves the answer undecided") {
  const Rehearsal dp = only(
      "version: 1\nversions: {lightning: \"1.9\"}\ncluster: {preset: dgx-a100, nodes: 1}\n"
      "trainer: {accelerator: gpu, devices: 2, strategy: dp, max_steps: 1}\n"
      "data: {train: {samples: 64}}\nverify: {world_sizes: [4]}\n");
  CHECK(dp.coverage.world_sizes == std::vector<int32_t>{1});
  CHECK_FALSE(dp.coverage.complete);
  CHECK(exit_code_of(dp, false) == ExitCode::undecided);
  CHECK(dp.undecided ==
        "verify.world_sizes asks for 4 ranks, which were not simulated: dp runs in 1 process, "
        "whatever its devices");
  const Rehearsal absent =
      only(training(1, 4, "[2]", "[forward]", "faults: [{straggler: {rank: 3, slowdown: 2}}]\n"));
  CHECK(exit_code_of(absent, false) == ExitCode::undecided);
  CHECK_FALSE(absent.coverage.complete);
}

TEST_CASE("the flag for other world sizes is quoted for shells") {
  const Rehearsal ran = only(bare_text(2, "    - barrier\n"));
  CHECK(render_verify(ran, Style{}).find("--set 'verify.world_sizes=[2,8]'") != std::string::npos);
}

TEST_CASE("the strategy's sizes follow the number of ranks") {
  const auto sharded = [](const std::string& mesh, const std::string& sizes) {
    std::string text = training(1, 4, sizes);
    const std::string ddp = "strategy: ddp";
    text.replace(text.find(ddp), ddp.size(),
                 "strategy: {ModelParallelStrategy: {tensor_parallel_size: 1, "
                 "data_parallel_size: 4, fully_shard: {modules: [Linear]" +
                     mesh + "}}}");
    return only(text);
  };
  const Rehearsal ran = sharded("", "[2, 8]");
  CHECK(ran.coverage.world_sizes == std::vector<int32_t>{4, 2, 8});
  CHECK(exit_code_of(ran, false) == ExitCode::ok);
  const Rehearsal hybrid = sharded(", mesh: [1, 4]", "[2, 8]");
  CHECK(hybrid.coverage.world_sizes == std::vector<int32_t>{4, 8});
  CHECK(hybrid.sizes_left_out.find("the shards of fully_shard.mesh do not divide 2") !=
        std::string::npos);
  // Only what can be looked at is recommended.
  CHECK(render_verify(sharded(", mesh: [1, 4]", "[]"), Style{}).find("world_sizes=[8]") !=
        std::string::npos);
}

}  // namespace world_sizes_test
