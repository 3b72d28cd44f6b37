#include <catch2/catch.hpp>

#include "rehearsal/findings/weight_spread.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace rehearse_test {

namespace {

Rehearsal only(const std::string& text, bool find_smallest = false) {
  return std::move(rehearsed(text, Judges::all, find_smallest).front().result);
}

bool has(const Rehearsal& rehearsal, const std::string& code) {
  return std::any_of(rehearsal.findings.begin(), rehearsal.findings.end(),
                     [&](const Finding& finding) { return finding.code == code; });
}

}  // namespace

TEST_CASE("a bare program takes the time that its statements and its network give") {
  // 2 ms of computing, then a ring all_reduce of 4,000,000 bytes on 4 ranks: 6 steps of 1 us and
  // 6/4 of the bytes over every link at 1 GB/s, which is 6 ms.
  const Rehearsal ran = only(bare_text(4, R"yaml(
    - kernel: 2 ms
    - all_reduce: {elements: 1_000_000}
)yaml"));
  CHECK(ran.findings.empty());
  CHECK(ran.results.prediction.total_time == 8_ms + 6_us);
  const Breakdown& parts = ran.results.prediction.breakdown;
  CHECK(parts.compute == 2_ms);
  CHECK(parts.exposed_communication == 6_ms + 6_us);
  CHECK(parts.idle == Time{});
}

TEST_CASE("communication that computing hides is not exposed") {
  // The all_reduce of 6.006 ms runs beside a kernel of 5 ms.
  const Rehearsal ran = only(bare_text(4, R"yaml(
    - all_reduce: {elements: 1_000_000, async: true, as: sum}
    - kernel: 5 ms
    - wait: sum
)yaml"));
  const Breakdown& parts = ran.results.prediction.breakdown;
  CHECK(parts.compute == 5_ms);
  CHECK(parts.exposed_communication == 1_ms + 6_us);
  CHECK(parts.communication == 6_ms + 6_us);
}

TEST_CASE("transfers are counted by operation, in calls and bytes") {
  const Rehearsal ran = only(bare_text(2, R"yaml(
    - repeat: 3
      do: [{all_reduce: {elements: 100}}]
    - all_gather: {elements: 10, as: all}
)yaml",
                                       "expect: [transfers.all_reduce == 3, transfers.total == 4, "
                                       "transfers.all_reduce.bytes == 1200 B, "
                                       "transfers.all_gather.bytes == 40 B]\n"));
  for (const Judged& one : ran.expectations) {
    INFO(one.text << ": " << one.actual);
    CHECK(one.met);
  }
}

TEST_CASE("a guarded collective hangs, and two ranks are enough to show it") {
  const Rehearsal ran = only(bare_text(8, guarded_statements), true);
  CHECK(ran.hung);
  REQUIRE(ran.findings.size() == 1);
  CHECK(ran.findings[0].code == "LS101");
  CHECK(ran.findings[0].smallest == "--set cluster.ranks=2");
  CHECK(exit_code_of(ran, false) == ExitCode::findings);
}

// Batch 7 comes where two ranks share 32 samples, two per batch.
TEST_CASE("a smaller example sets validation data only where something validates") {
  const auto smallest = [](const std::string& validation) {
    const Rehearsal ran = only(
        "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\n"
        "model: {input: [4], layers: [{Linear: [4, 2]}]}\n"
        "data: {train: {samples: 64, batch_size: 2}" +
            validation +
            "}\ntrainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 3}\n"
            "program: {on_train_batch_end: [{if: batch_idx == 7 and rank == 1, then: "
            "[barrier]}]}\nverify: {numerics: false}\n",
        true);
    REQUIRE_FALSE(ran.findings.empty());
    return ran.findings.front().smallest;
  };
  CHECK(smallest("") == "--set trainer.max_epochs=1 --set data.train.samples=32");
  CHECK(smallest(", val: {samples: 8, batch_size: 2}").find("data.val.samples=1") !=
        std::string::npos);
}

// Gradients times the loss scale of 65,536 are beyond 65,504 in some step.
TEST_CASE("a chunk that holds an infinite number is said to arrive as NaN") {
  const Rehearsal ran = only(
      "version: 1\nversions: {lightning: \"1.9\"}\ncluster: {preset: dgx-a100, nodes: 1}\n"
      "model: {input: [16], layers: [{Linear: [16, 32]}, GELU, {Linear: [32, 4]}], loss: "
      "MSELoss}\noptimizer: {SGD: {lr: 0.01}}\n"
      "data: {train: {samples: 400, batch_size: 5}}\n"
      "trainer: {accelerator: gpu, devices: 2, precision: 16, strategy: {BaguaStrategy: "
      "{algorithm: bytegrad, hierarchical: false}}, max_epochs: 1}\n");
  CHECK(weight_spread_text(ran.run).find("arrived as NaN") != std::string::npos);
  CHECK(weight_spread_text(ran.run).find("nan") == std::string::npos);
}

TEST_CASE("an unknown condition is tried both ways on each rank apart") {
  const Rehearsal ran = only(bare_text(2, "    - {if: unknown, then: [barrier]}\n"));
  CHECK(ran.coverage.schedules == 4);  // 2 ways on each of 2 ranks
  CHECK(ran.coverage.complete);
  CHECK(ran.hung);
  const Rehearsal without = only(bare_text(2, "    - {if: unknown, then: [{host: 1 ms}]}\n"));
  CHECK(without.coverage.schedules == 4);
  CHECK(without.findings.empty());
}

TEST_CASE("too few schedules leave the answer undecided") {
  const Rehearsal ran = only(
      bare_text(4, "    - {if: unknown, then: [{host: 1 ms}]}\n", "verify: {max_schedules: 5}\n"));
  CHECK(ran.coverage.schedules == 5);
  CHECK_FALSE(ran.coverage.complete);
  CHECK_FALSE(ran.undecided.empty());
  CHECK(exit_code_of(ran, false) == ExitCode::undecided);
}

TEST_CASE("a receive from any source is matched with every sender") {
  // Rank 0 takes two messages; only when rank 2's comes first is the assertion wrong.
  const Rehearsal ran = only(bare_text(3, R"yaml(
    - let: {x: "full(1, rank)"}
    - if: rank == 0
      then:
        - recv: {tensor: x, src: any, as: first}
        - recv: {tensor: x, src: any, as: second}
        - assert: first[0] == 1
      else:
        - send: {tensor: x, dst: 0}
)yaml",
                                       "process_group: {backend: gloo}\n"));
  CHECK(ran.coverage.free);
  REQUIRE(ran.findings.size() == 1);
  CHECK(ran.findings[0].code.empty());
  CHECK(ran.findings[0].title == "assertion `first[0] == 1` is false on rank 0");
}

// Gloo may bring either message first. All ranks have just met, so that none is late as a whole.
TEST_CASE("a receive from any source may take a message that comes later") {
  const auto codes = [](const std::string& first, const std::string& second) {
    return only(
        bare_text(3,
                  "    - let: {x: \"full(1, 1.0)\"}\n    - barrier\n"
                  "    - if: rank == 0\n      then:\n        - recv: {tensor: x, src: " +
                      first + ", as: a}\n        - recv: {tensor: x, src: 2, tag: " + second +
                      ", as: b}\n    - if: rank == 1\n      then: [{send: {tensor: x, dst: "
                      "0}}]\n    - if: rank == 2\n      then: [{host: 1 ms}, {send: {tensor: "
                      "x, dst: 0, tag: " +
                      second + "}}]\n",
                  "process_group: {backend: gloo, eager_limit: 0 B}\n"));
  };
  const Rehearsal taken = codes("any", "0");
  CHECK(taken.hung);
  REQUIRE(taken.findings.size() == 1);
  CHECK(taken.findings[0].when.find("other senders first") != std::string::npos);
  CHECK_FALSE(codes("1", "0").hung);
  CHECK_FALSE(codes("any", "7").hung);
}

TEST_CASE("orders of several receives from any source are each taken once") {
  const Rehearsal ran = only(bare_text(4, R"yaml(
    - let: {x: "full(1, rank)"}
    - barrier
    - if: rank == 0
      then: [{repeat: 3, do: [{recv: {tensor: x, src: any, as: y}}]}]
      else: [{send: {tensor: x, dst: 0}}]
)yaml",
                                       "process_group: {backend: gloo, eager_limit: 0 B}\n"));
  CHECK(ran.findings.empty());
  CHECK(ran.coverage.complete);
  CHECK(ran.coverage.schedules == 1 + 4 + 6);  // as it comes, each rank late, 3 x 2 x 1
}

TEST_CASE("messages of one sender come in their order, whatever source is asked for") {
  const Rehearsal ran = only(bare_text(3, R"yaml(
    - let: {x: "full(1, 10 * rank + 1)", y: "full(1, 10 * rank + 2)"}
    - if: rank == 0
      then:
        - recv: {tensor: x, src: any, as: a}
        - recv: {tensor: x, src: any, as: b}
        - recv: {tensor: x, src: any, as: c}
        - recv: {tensor: x, src: any, as: d}
        - assert: a[0] == 11 or a[0] == 21
        - assert: d[0] == 12 or d[0] == 22
      else:
        - send: {tensor: x, dst: 0, async: true, as: first}
        - send: {tensor: y, dst: 0, async: true, as: second}
        - wait: first
        - wait: second
)yaml",
                                       "process_group: {backend: gloo, eager_limit: 0 B}\n"));
  CHECK(ran.findings.empty());
  CHECK(ran.coverage.schedules == 1 + 3 + 6);  // 4! / (2! 2!) orders
}

TEST_CASE("other world sizes are looked at when asked") {
  const Rehearsal ran = only(
      bare_text(2, "    - {if: rank == 3, then: [barrier]}\n", "verify: {world_sizes: [2, 4]}\n"));
  CHECK(ran.coverage.world_sizes == std::vector<int32_t>{2, 4});
  CHECK(has(ran, "LS101"));
}

TEST_CASE("an endless loop is undecided, not a verdict") {
  const Rehearsal ran = only(bare_text(1, "    - {repeat: 100_000_000, do: [{let: {x: 1}}]}\n"));
  CHECK(exit_code_of(ran, false) == ExitCode::undecided);
  CHECK(ran.undecided.find("endless loop") != std::string::npos);
}

TEST_CASE("what is ignored is still reported and does not fail") {
  const Rehearsal ran =
      only(bare_text(2, guarded_statements, "verify: {ignore: {LS101: known since May}}\n"));
  CHECK(has(ran, "LS101"));
  CHECK(exit_code_of(ran, false) == ExitCode::ok);
}

TEST_CASE("a refused combination is a finding, and expected when the scenario says so") {
  const Rehearsal ran = only(
      "version: 1\ncluster: {preset: dgx-a100}\n"
      "trainer: {strategy: ddp, devices: 9, max_steps: 1}\n"
      "expect: [refused]\n");
  CHECK(ran.refused());
  CHECK(has(ran, "LS501"));
  REQUIRE(ran.expectations.size() == 1);
  CHECK(ran.expectations[0].met);
}

TEST_CASE("a straggler makes every rank wait for it") {
  const std::string program = "    - kernel: 10 ms\n    - barrier\n";
  const Rehearsal even = only(bare_text(2, program));
  const Rehearsal slow =
      only(bare_text(2, program, "faults: [{straggler: {rank: 1, slowdown: 3.0}}]\n"));
  CHECK(slow.results.prediction.total_time - even.results.prediction.total_time == 20_ms);
}

TEST_CASE("values of dp and ddp are those of one device, also after an evaluation") {
  for (const char* strategy : {"dp", "ddp"}) {
    const Rehearsal ran = only(std::string(R"yaml(
version: 1
versions: {lightning: "1.9"}
model: {layers: [{Linear: [8, 16]}, ReLU, {Linear: [16, 2]}], input: [8]}
data: {batch_size: 4, train: {samples: 64}, val: {samples: 16}}
trainer: {accelerator: gpu, devices: 2, max_epochs: 1, strategy: )yaml") +
                               strategy + R"yaml(}
program: {validation_step: [{log: {name: val_loss, value: loss, sync_dist: true}}]}
)yaml");
    INFO(strategy);
    CHECK(ran.findings.empty());
    CHECK(ran.results.single_device.has_value());
    CHECK(std::count(ran.coverage.looked_at.begin(), ran.coverage.looked_at.end(),
                     "the same samples on one device") == 1);
  }
}

}  // namespace rehearse_test
