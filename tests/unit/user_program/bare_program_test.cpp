#include <catch2/catch.hpp>

#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace bare_program_test {

namespace {

std::string bare(int ranks, const std::string& statements, const std::string& more = "") {
  return "version: 1\ncluster: {ranks: " + std::to_string(ranks) +
         ", network: {bandwidth: 1 GB/s, latency: 1 us}}\n" + more + "program:\n  main:\n" +
         statements;
}

}  // namespace

TEST_CASE("an all_reduce of a bare program sums over the ranks") {
  const Ran ran = run_text(bare(4, R"yaml(
    - let: {x: "full(3, rank + 1)"}
    - all_reduce: x
    - assert: sum(x) == 30
    - all_reduce: {tensor: x, op: max, as: y}
    - assert: y[0] == 10 and x[0] == 10
)yaml"));
  CHECK_FALSE(ran.result.hung);
  for (size_t rank = 0; rank < 4; ++rank) {
    CHECK(ran.result.ends[rank].kind == RankEnd::Kind::finished);
    CHECK(ran.log(rank).findings.empty());
  }
}

TEST_CASE("every collective has the result that its definition says") {
  const Ran ran = run_text(bare(2, R"yaml(
    - let: {x: 10 * rank + arange(2), y: "full(2, rank + 1)"}
    - all_gather: {tensor: x, as: gathered}
    - assert: gathered[1][1] == 11 and gathered[0][1] == 1 and len(gathered) == 2
    - reduce_scatter: {tensor: x, as: part}
    - assert: part[0] == 10 + 2 * rank and len(part) == 1
    - broadcast: {tensor: y, src: 1}
    - assert: y[0] == 2
    - scatter: {tensor: x, src: 1, as: mine}
    - assert: mine[0] == 10 + rank
    - gather: {tensor: x, dst: 0, as: all_of_it}
    - {if: is_global_zero, then: [{assert: "all_of_it[1][0] == 10"}]}
    - all_to_all: {tensor: x, as: swapped}
    - assert: swapped[0] == rank and swapped[1] == 10 + rank
    - reduce: {tensor: y, dst: 1, as: total}
    - {if: rank == 1, then: [{assert: "total[0] == 4"}]}
    - all_to_all:
        tensor: arange(3)
        input_split_sizes: [1, 2]
        output_split_sizes: [1 + rank, 1 + rank]
        as: uneven
    - assert: len(uneven) == 2 + 2 * rank
)yaml"));
  CHECK_FALSE(ran.result.hung);
  for (size_t rank = 0; rank < 2; ++rank) {
    CHECK(ran.result.ends[rank].message == "");
    for (const StatementFinding& finding : ran.log(rank).findings) {
      UNSCOPED_INFO(finding.message);
    }
    CHECK(ran.log(rank).findings.empty());
  }
}

TEST_CASE("an all_gather under a rank guard hangs, and its branch is a row") {
  const Ran ran = run_text(bare(4, R"yaml(
    - if: is_global_zero
      then:
        - all_gather: {elements: 16, as: gathered}
        - item: sum(gathered)
)yaml"));
  CHECK(ran.result.hung);
  CHECK(ran.result.waiting.size() == 1);
  CHECK(ran.result.waiting[0].rank == 0);
  std::vector<int32_t> taken;
  for (int32_t rank = 0; rank < 4; ++rank) {
    ran.result.journal->lane(rank, 0).for_each([&](const Row& row) {
      if (row.row == RowKind::choice) {
        taken.push_back(row.peer);
        CHECK(row.tag == static_cast<int32_t>(ChoiceKind::branch));
        const Site* site = ran.preparation.sites.find(row.site);
        REQUIRE(site != nullptr);
        CHECK(site->condition == "is_global_zero");
      }
    });
  }
  CHECK(taken == std::vector<int32_t>{1, 0, 0, 0});
}

TEST_CASE("using the result of async work before wait is LS201, after wait it is not") {
  const std::string wrong = R"yaml(
    - let: {x: "full(2, 1.0)"}
    - all_reduce: {tensor: x, async: true, as: y}
    - assert: sum(y) == 4
)yaml";
  const std::string right = R"yaml(
    - let: {x: "full(2, 1.0)"}
    - all_reduce: {tensor: x, async: true, as: y}
    - wait: y
    - assert: sum(y) == 4
)yaml";
  for (const char* backend : {"nccl", "gloo"}) {
    const std::string group = std::string("process_group: {backend: ") + backend + "}\n";
    const Ran bad = run_text(bare(2, wrong, group));
    REQUIRE(bad.log(0).findings.size() == 1);
    CHECK(bad.log(0).findings[0].code == "LS201");
    CHECK(bad.preparation.sites.place(bad.log(0).findings[0].site) == "scenario.yaml:9:7");
    const Ran good = run_text(bare(2, right, group));
    CHECK(good.log(0).findings.empty());
  }
}

TEST_CASE("a barrier is an all_reduce with NCCL and a barrier with Gloo, and the host waits") {
  const Ran nccl = run_text(bare(2, "    - barrier\n"));
  CHECK(count(nccl.result, 0, OpKind::all_reduce) == 1);
  CHECK(count(nccl.result, 0, OpKind::barrier) == 0);
  const Ran gloo = run_text(bare(2, "    - barrier\n", "process_group: {backend: gloo}\n"));
  CHECK(count(gloo.result, 0, OpKind::barrier) == 1);
  CHECK(count(gloo.result, 0, OpKind::all_reduce) == 0);
}

TEST_CASE("messages that both send first hang unless they are grouped") {
  const Ran alone = run_text(bare(2, R"yaml(
    - send: {elements: 1000, dst: 1 - rank}
    - recv: {elements: 1000, src: 1 - rank}
)yaml"));
  CHECK(alone.result.hung);
  const Ran grouped = run_text(bare(2, R"yaml(
    - let: {x: "full(4, rank)", y: "full(4, 9)"}
    - batch_isend_irecv:
        - send: {tensor: x, dst: 1 - rank}
        - recv: {tensor: y, src: 1 - rank}
    - assert: y[0] == 1 - rank
)yaml"));
  CHECK_FALSE(grouped.result.hung);
  CHECK(grouped.log(0).findings.empty());
  CHECK(grouped.log(1).findings.empty());
}

TEST_CASE("groups by list and by colour hold the ranks that they name") {
  const Ran ran = run_text(bare(4, R"yaml(
    - new_group: {color: rank % 2, as: half}
    - let: {x: "full(1, rank)"}
    - all_reduce: {tensor: x, group: half}
    - assert: x[0] == 2 + 2 * (rank % 2)
    - new_group: {ranks: [1, 3], as: odd}
    - if: rank % 2 == 1
      then:
        - all_gather: {tensor: x, group: odd, as: both}
        - assert: len(both) == 2
)yaml"));
  CHECK_FALSE(ran.result.hung);
  for (size_t rank = 0; rank < 4; ++rank) {
    CHECK(ran.result.ends[rank].message == "");
    CHECK(ran.log(rank).findings.empty());
  }
}

TEST_CASE("a loop that never ends reaches the limit of statements") {
  Scenario scenario = scenario_of(bare(1, R"yaml(
    - repeat: 1000000000
      do:
        - let: {x: 1}
)yaml"));
  const Ran ran{prepare(scenario, {}), {}};
  const RunResult result = simulate(ran.preparation);
  CHECK(result.ends[0].kind == RankEnd::Kind::raised);
  CHECK(ran.log(0).statement_limit_reached);
  CHECK(ran.log(0).statements == 10'000'001);
}

TEST_CASE("raise ends this rank alone, with its place") {
  const Ran ran = run_text(bare(2, R"yaml(
    - if: rank == 1
      then:
        - raise: no more disk
    - barrier
)yaml"));
  CHECK(ran.result.ends[1].kind == RankEnd::Kind::raised);
  CHECK(ran.result.ends[1].message == "no more disk");
  CHECK(ran.preparation.sites.place(ran.result.ends[1].site) == "scenario.yaml:8:11");
  CHECK(ran.result.hung);
}

TEST_CASE("a kernel and a collective overlap only as their streams allow") {
  // 2 ranks, ring: 2 steps of 1 us and 2 * 1/2 of 1 MB at 1 GB/s = 1.002 ms.
  const Ran after = run_text(bare(2, R"yaml(
    - kernel: 5 ms
    - all_reduce: {elements: 1_000_000, dtype: uint8}
    - kernel: 5 ms
)yaml"));
  CHECK(seconds(after.result.total_time) == Approx(0.011002));
  const Ran overlapped = run_text(bare(2, R"yaml(
    - all_reduce: {elements: 1_000_000, dtype: uint8, async: true, as: work}
    - kernel: 5 ms
    - wait: work
    - kernel: 5 ms
)yaml"));
  CHECK(seconds(overlapped.result.total_time) == Approx(0.010));
}

// ProcessGroupGloo refuses AVG before PyTorch 2.8; 2.11 gives 1.5 of 1 and 2, and for whole numbers
// raises as it divides in place (seen with torch 2.11.0).
TEST_CASE("Gloo averages floats from torch 2.8 on") {
  const auto averaged = [](const std::string& torch, const std::string& data) {
    return run_text(bare(2,
                         "    - let: {x: \"" + data +
                             "\"}\n"
                             "    - all_reduce: {tensor: x, op: avg, as: y}\n"
                             "    - assert: y[0] == 1.5\n",
                         "process_group: {backend: gloo}\nversions: {torch: \"" + torch + "\"}\n"));
  };
  const Ran newer = averaged("2.11", "full(2, 1.0 + rank)");
  CHECK(newer.log(0).findings.empty());
  CHECK(newer.result.ends[0].kind == RankEnd::Kind::finished);
  CHECK(averaged("2.7", "full(2, 1.0 + rank)").result.ends[0].kind == RankEnd::Kind::raised);
  CHECK(averaged("2.11", "full(2, 1 + rank)").result.ends[0].message.find("result type Float") ==
        0);
}

// torch 2.11 says these of batches, over Gloo and NCCL alike.
TEST_CASE("a batch of messages names its sources and keeps to one group") {
  const auto ended = [](const std::string& messages, const std::string& torch = "2.11") {
    const Ran ran =
        run_text(bare(2,
                      "    - let: {x: \"full(4, 1.0)\"}\n"
                      "    - new_group: {ranks: [0, 1], as: g}\n"
                      "    - batch_isend_irecv: " +
                          messages + "\n",
                      "process_group: {backend: gloo}\nversions: {torch: \"" + torch + "\"}\n"));
    return ran.result.ends[0];
  };
  const std::string both = "[{send: {tensor: x, dst: 1 - rank}}, {recv: {tensor: x, src: ";
  CHECK(ended(both + "1 - rank, as: y}}]").kind == RankEnd::Kind::finished);
  CHECK(ended(both + "any, as: y}}]").message.find("Must specify global_rank or group_rank") == 0);
  CHECK(ended(both + "1 - rank, group: g, as: y}}]").message ==
        "All ops need to use the same group.");
  CHECK(ended(both + "any, as: y}}]", "2.5").kind == RankEnd::Kind::finished);
}

}  // namespace bare_program_test
