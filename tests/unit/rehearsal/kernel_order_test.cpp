// Collectives of two groups on streams of their own, in different orders.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace kernel_order_test {
using cli::Rehearsal;

namespace {

Rehearsal only(const std::string& statements, const std::string& more = "", int ranks = 2) {
  return std::move(rehearsed(bare_text(ranks, statements, more)).front().result);
}

const std::string groups =
    "    - let: {x: \"full(4, 1.0)\", y: \"full(4, 2.0)\"}\n"
    "    - new_group: {ranks: [0, 1], as: a}\n    - new_group: {ranks: [0, 1], as: b}\n";
const std::string on_a = "{all_reduce: {tensor: x, group: a, stream: s}}";
const std::string on_b = "{all_reduce: {tensor: y, group: b, stream: t}}";

std::string crossed(const std::string& between = "") {
  return groups + "    - if: rank == 0\n      then: [" + on_a + ", " + between + on_b +
         "]\n      else: [" + on_b + ", " + on_a + "]\n    - synchronize\n";
}

bool tells(const Finding& finding, const std::string& part) {
  return std::any_of(finding.follows.begin(), finding.follows.end(),
                     [&part](const auto& line) { return line.find(part) != std::string::npos; });
}

}  // namespace

TEST_CASE("two groups on two streams in different orders are a warning with NCCL") {
  for (const char* nccl : {"2.20", "2.27"}) {
    INFO(nccl);
    const Rehearsal ran = only(crossed(), "versions: {nccl: \"" + std::string(nccl) + "\"}\n");
    CHECK_FALSE(ran.hung);
    REQUIRE(ran.findings.size() == 1);
    const Finding& finding = ran.findings[0];
    CHECK(finding.code == "LS106");
    CHECK(finding.level == Level::warning);
    CHECK(finding.ranks == RankSet{0, 1});
    CHECK(finding.sites.size() == 2);
    CHECK(tells(finding, std::string("NCCL ") + nccl));
    CHECK(tells(finding, "NCCL_LAUNCH_ORDER_IMPLICIT") == (std::string(nccl) == "2.27"));
  }
}

TEST_CASE("one order on all ranks is no hazard of kernels") {
  const std::string same = groups + "    - " + on_a + "\n    - " + on_b + "\n    - synchronize\n";
  CHECK(only(same).findings.empty());
}

// Each call holds its host up, so that the other group's is never made.
TEST_CASE("two groups in different orders over Gloo hang, whatever their streams") {
  const Rehearsal ran = only(crossed(), "process_group: {backend: gloo}\n");
  CHECK(ran.hung);
  REQUIRE(ran.findings.size() == 1);
  CHECK(ran.findings[0].code == "LS106");
  CHECK(ran.findings[0].level == Level::error);
}

TEST_CASE("a circle of orders over three groups is found without two groups that cross") {
  const std::string circle =
      "    - let: {x: \"full(4, 1.0)\", y: \"full(4, 1.0)\"}\n"
      "    - new_group: {ranks: [0, 1], as: a}\n    - new_group: {ranks: [1, 2], as: b}\n"
      "    - new_group: {ranks: [0, 2], as: c}\n"
      "    - if: rank == 0\n"
      "      then: [{all_reduce: {tensor: x, group: a, stream: s}}, "
      "{all_reduce: {tensor: y, group: c, stream: t}}]\n"
      "    - if: rank == 1\n"
      "      then: [{all_reduce: {tensor: x, group: b, stream: s}}, "
      "{all_reduce: {tensor: y, group: a, stream: t}}]\n"
      "    - if: rank == 2\n"
      "      then: [{all_reduce: {tensor: x, group: c, stream: s}}, "
      "{all_reduce: {tensor: y, group: b, stream: t}}]\n"
      "    - synchronize\n";
  const Rehearsal ran = only(circle, "", 3);
  REQUIRE(ran.findings.size() == 1);
  CHECK(ran.findings[0].code == "LS106");
  CHECK(ran.findings[0].level == Level::warning);
}

}  // namespace kernel_order_test
