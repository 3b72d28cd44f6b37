// Expectations that name the place, ranks, level and alternatives of a finding.
#include <catch2/catch.hpp>

#include "tests/unit/io/scenario/memory_files.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace expectations_test {

namespace {

Judged judged(const std::string& text) {
  return rehearsed(text).front().result.expectations.front();
}

bool is_met(const std::string& text) {
  const Judged one = judged(text);
  INFO(one.text << ": " << one.actual);
  CHECK(one.judged);
  return one.met;
}

// Rank 0 waits in line 7 for ranks 1-3, which the `if` of line 6 keeps away.
bool is_met_by_guard(const std::string& expectation) {
  return is_met(R"yaml(version: 1
cluster: {ranks: 4, network: {bandwidth: 1 GB/s, latency: 1 us}}
expect: [")yaml" +
                expectation + R"yaml("]
program:
  main:
    - if: is_global_zero
      then: [{all_gather: {elements: 16, as: gathered, at: "model.py:25"}}]
)yaml");
}

// Rank 3 has one batch more than the others.
bool is_met_by_loader(const std::string& expectation) {
  return is_met(R"yaml(version: 1
cluster: {preset: dgx-a100, nodes: 1}
model: {preset: mlp}
trainer: {accelerator: gpu, devices: 4, strategy: ddp, max_epochs: 1}
data: {train: {batches: 2 + (rank == 3), batch_size: 2}}
expect: [")yaml" +
                expectation + "\"]\n");
}

std::string refusal(const std::string& expectation) {
  const LoadedScenarios loaded = load_text("version: 1\nexpect: [\"" + expectation + "\"]\n");
  return loaded.ok() ? "" : loaded.diagnostics.front().message;
}

}  // namespace

TEST_CASE("one of several codes is enough") {
  CHECK(is_met_by_guard("finding LS101"));
  CHECK(is_met_by_guard("finding LS102 or LS101"));
  CHECK(is_met_by_guard("finding LS101 or finding LS102"));
  CHECK_FALSE(is_met_by_guard("finding LS102 or LS103"));
}

TEST_CASE("a finding is looked for at a line, a statement's own place or a key") {
  CHECK(is_met_by_guard("finding LS101 at scenario.yaml:7"));
  CHECK(is_met_by_guard("finding LS101 at model.py:25"));
  CHECK(is_met_by_guard("finding LS101 at program.main"));
  CHECK(is_met_by_guard("finding LS101 at program.main.0.then"));
  CHECK_FALSE(is_met_by_guard("finding LS101 at scenario.yaml:2"));
  CHECK_FALSE(is_met_by_guard("finding LS101 at cluster.ranks"));
  CHECK(is_met_by_loader("finding LS102 or LS101"));
  CHECK_FALSE(is_met_by_loader("finding LS102 or LS101 at trainer.devices"));
}

TEST_CASE("a finding names ranks in its title or in a line of its own") {
  CHECK(is_met_by_guard("finding LS101 on ranks 1-3"));
  CHECK(is_met_by_guard("finding LS101 on rank 0"));
  CHECK(is_met_by_guard("finding LS101 at program.main on ranks 1, 2-3"));
  CHECK_FALSE(is_met_by_guard("finding LS101 on ranks 1-2"));
  CHECK_FALSE(is_met_by_guard("no_finding LS101 on ranks 1-3"));
  CHECK(is_met_by_guard("no_finding LS101 on ranks 1-2"));
}

TEST_CASE("the level of a finding may be expected") {
  const std::string eager = bare_text(2, R"yaml(
    - send: {elements: 1, dst: 1 - rank}
    - recv: {elements: 1, src: 1 - rank}
)yaml",
                                      "process_group: {backend: gloo, eager_limit: 1 kB}\n");
  CHECK(is_met(eager + "expect: [warning LS108]\n"));
  CHECK_FALSE(is_met(eager + "expect: [note LS108]\n"));
  CHECK_FALSE(is_met_by_guard("warning LS101"));
}

TEST_CASE("a failed assertion is expected by its word") {
  const std::string asserts = "    - assert: rank == 0\n";
  CHECK(is_met(bare_text(2, asserts, "expect: [assertion]\n")));
  CHECK(is_met(bare_text(2, asserts, "expect: [assertion on rank 1]\n")));
  CHECK_FALSE(is_met(bare_text(2, asserts, "expect: [assertion on rank 0]\n")));
  CHECK_FALSE(is_met(bare_text(2, "    - barrier\n", "expect: [assertion]\n")));
}

TEST_CASE("devices are compared with a number or with the list of them") {
  const std::string text =
      "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\nmodel: {preset: mlp}\n"
      "data: {train: {samples: 16, batch_size: 2}}\n"
      "trainer: {accelerator: gpu, devices: [0, 1, 3], strategy: ddp, max_epochs: 1}\n";
  CHECK(is_met(text + "expect: [\"devices == [0, 1, 3]\"]\n"));
  CHECK_FALSE(is_met(text + "expect: [\"devices == [0, 1, 2]\"]\n"));
  CHECK(is_met(text + "expect: [devices == 3]\n"));
}

TEST_CASE("times are compared with years, which are longer than any run") {
  CHECK(is_met(bare_text(2, "    - barrier\n", "expect: [total_time < 355 y]\n")));
  CHECK_FALSE(is_met(bare_text(2, "    - barrier\n", "expect: [total_time > 1 y]\n")));
  CHECK(refusal("total_time == 355 y +- 10 %").find("no run lasts that long") != std::string::npos);
}

TEST_CASE("what no finding could meet is refused") {
  CHECK(refusal("finding LS101 at data.trian").find("at `data.trian`") != std::string::npos);
  CHECK(refusal("finding LS101 on ranks one").find("takes ranks") != std::string::npos);
  CHECK(refusal("finding LS101 on ranks 3-1").find("takes ranks") != std::string::npos);
  CHECK(refusal("finding LS101 or").find("cannot follow") != std::string::npos);
  CHECK(refusal("finding LS101 or 7").find("takes a code") != std::string::npos);
  CHECK(refusal("warning LS999").find("no finding has the code") != std::string::npos);
  CHECK(refusal("no_hang on rank 1").find("whole run") != std::string::npos);
}

}  // namespace expectations_test
