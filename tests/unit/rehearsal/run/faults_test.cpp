#include <algorithm>
#include <catch2/catch.hpp>

#include "rehearsal/run/draw_faults.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace faults_test {

namespace {

Rehearsal only(const std::string& text) { return std::move(rehearsed(text).front().result); }

Rehearsal training(const std::string& faults) {
  return only(R"yaml(
version: 1
cluster: {preset: dgx-a100, nodes: 1}
model: {layers: [{Linear: [4, 2]}], input: [4]}
trainer: {devices: 2, strategy: ddp, max_epochs: 2, num_sanity_val_steps: 0, limit_val_batches: 0}
data: {batch_size: 4, sample_time: 1 ms, train: {samples: 32}}
faults: [)yaml" +
              faults + "]\n");
}

// Two ranks add up: 1 + 1.
Rehearsal sum_of_two(const std::string& faults, int expected) {
  return only(bare_text(2,
                        "    - let: {x: \"full(1, 1.0)\"}\n"
                        "    - barrier\n"
                        "    - all_reduce: {tensor: x}\n"
                        "    - assert: x[0] == " +
                            std::to_string(expected) + "\n",
                        "faults: [" + faults + "]\n"));
}

std::string problem_of(const Rehearsal& rehearsal, Problem::Kind kind) {
  for (const Problem& problem : rehearsal.problems) {
    if (problem.kind == kind && problem.message.find("ModelCheckpoint") == std::string::npos) {
      return problem.message;
    }
  }
  return "";
}

int64_t steps_of(const Rehearsal& rehearsal, size_t rank) {
  return rehearsal.run.preparation.log->ranks[rank].steps;
}

}  // namespace

TEST_CASE("an exception strikes the hook that begins at its step, on its rank") {
  const Rehearsal ran = training("{exception: {rank: 1, hook: on_train_batch_end, at: step 3}}");
  CHECK(ran.hung);
  const RankEnd& end = ran.run.result.ends[1];
  CHECK(end.kind == RankEnd::Kind::raised);
  CHECK(end.message == "injected exception in on_train_batch_end");
  CHECK(steps_of(ran, 1) == 4);  // step 3 itself was taken
  REQUIRE(ran.findings.size() == 1);
  CHECK(ran.findings[0].code == "LS101");
}

TEST_CASE("at epoch N is the beginning of that epoch, at step N that of its first batch") {
  CHECK(steps_of(training("{lost_rank: {rank: 1, at: epoch 1}}"), 1) == 4);
  CHECK(steps_of(training("{lost_rank: {rank: 1, at: step 2}}"), 1) == 2);
  CHECK(steps_of(training("{signal: {rank: 1, name: SIGKILL, at: step 2}}"), 1) == 2);
}

TEST_CASE("the ranks of a lost node are said to be several") {
  const std::string text =
      "version: 1\ncluster: {preset: dgx-a100, nodes: 2}\n"
      "model: {layers: [{Linear: [4, 2]}], input: [4]}\ndata: {batch_size: 4, train: {samples: "
      "64}}\n"
      "trainer: {devices: 2, num_nodes: 2, strategy: ddp, max_epochs: 1, num_sanity_val_steps: 0}\n"
      "faults: [{lost_node: {node: 1, at: step 1}}]\n";
  const Rehearsal ran = std::move(rehearsed(text).front().result);
  REQUIRE_FALSE(ran.findings.empty());
  const Finding& finding = ran.findings.front();
  CHECK(finding.title.find("ranks 2-3 were lost after their operation") != std::string::npos);
}

TEST_CASE("a rank is lost before the operation that is named, and the finding names the last one") {
  const Rehearsal ran = sum_of_two("{lost_rank: {rank: 1, call: 2}}", 2);
  CHECK(ran.hung);
  CHECK(ran.run.result.ends[1].kind == RankEnd::Kind::lost);
  REQUIRE(ran.findings.size() == 1);
  CHECK(ran.findings[0].code == "LS101");
  CHECK(ran.findings[0].title ==
        "rank 0 waits forever in all_reduce: rank 1 was lost after its operation 1, barrier");
  REQUIRE(ran.findings[0].sites.size() == 2);
  CHECK(ran.findings[0].sites[1].role == SiteRole::exception);
  CHECK(sum_of_two("{lost_rank: {rank: 1, call: 1}}", 2).findings[0].title ==
        "rank 0 waits forever in barrier: rank 1 was lost before its first operation");
  const Rehearsal late = sum_of_two("{lost_rank: {rank: 1, call: 99}}", 2);
  CHECK(late.findings.empty());
  CHECK(problem_of(late, Problem::Kind::note).find("fewer than 99 operations") !=
        std::string::npos);
}

TEST_CASE("a corrupted value strikes calls that send data, and no others") {
  CHECK(sum_of_two("", 2).findings.empty());
  // The barrier before it sends none, so the all_reduce is the first such call: 1 - 1.
  CHECK(sum_of_two("{corrupted_value: {rank: 1, call: 1}}", 0).findings.empty());
  const Rehearsal wrong = sum_of_two("{corrupted_value: {rank: 1, call: 1}}", 2);
  REQUIRE(wrong.findings.size() == 1);
  CHECK(wrong.findings[0].title == "assertion `x[0] == 2` is false on ranks 0-1");
}

TEST_CASE("a lost message makes the others wait, from the call that is named") {
  const Rehearsal barrier = sum_of_two("{lost_message: {rank: 1, call: 1}}", 2);
  CHECK(barrier.hung);
  CHECK(std::any_of(barrier.findings.begin(), barrier.findings.end(),
                    [](const Finding& finding) { return finding.code == "LS101"; }));
}

TEST_CASE("a fault that struck nothing is reported") {
  for (const char* fault :
       {"{corrupted_value: {rank: 1, call: 2}}", "{lost_message: {rank: 1, call: 3}}",
        "{exception: {rank: 1, hook: main, at: 5 s}}", "{lost_rank: {rank: 1, at: 5 s}}",
        "{straggler: {rank: 1, slowdown: 2.0, at: 5 s}}",
        "{slow_link: {between: [gpu 0, gpu 1], bandwidth: 50 %, at: 5 s}}"}) {
    const Rehearsal ran = sum_of_two(fault, 2);
    INFO(fault << ": " << problem_of(ran, Problem::Kind::invalid));
    CHECK(ran.findings.empty());
    REQUIRE(ran.run.unstruck.size() == 1);
    CHECK(problem_of(ran, Problem::Kind::note).find("fault 1, `") == 0);
  }
  for (const char* fault :
       {"{exception: {rank: 1, at: step 99}}", "{out_of_memory: {rank: 0, hook: test_step}}",
        "{lost_rank: {rank: 1, at: epoch 9}}", "{slow_data: {rank: 1, slowdown: 2.0, at: 9 h}}"}) {
    CHECK(training(fault).run.unstruck.size() == 1);
  }
}

TEST_CASE("a fault that strikes is not told as one that did not") {
  for (const char* fault :
       {"{corrupted_value: {rank: 1, call: 1}}", "{lost_message: {rank: 1, call: 2}}",
        "{exception: {rank: 1, hook: main}}", "{lost_rank: {rank: 1}}",
        "{slow_link: {between: [gpu 0, gpu 1], bandwidth: 50 %}}"}) {
    INFO(fault);
    CHECK(sum_of_two(fault, 2).run.unstruck.empty());
  }
  CHECK(training("{straggler: {rank: 1, slowdown: 2.0, at: step 4}}").run.unstruck.empty());
  CHECK(training("{slow_data: {rank: 1, slowdown: 2.0, at: step 4}}").run.unstruck.empty());
}

TEST_CASE("a rank that is lost while it waits is lost, not stuck") {
  const Rehearsal ran = training("{lost_rank: {rank: 1, at: 6 ms}}");
  CHECK(ran.hung);
  CHECK(ran.run.result.ends[1].kind == RankEnd::Kind::lost);
  CHECK(ran.run.unstruck.empty());
}

TEST_CASE("slow loading takes its factor longer from its step on") {
  const Time healthy = training("").results.prediction.total_time;
  // Batches 4 to 7 of 4 samples and 1 ms each take twice as long.
  const Time slow =
      training("{slow_data: {rank: 1, slowdown: 2.0, at: step 4}}").results.prediction.total_time;
  CHECK(slow - healthy == 16_ms);
}

TEST_CASE("latency of a slow link is added once to a message and ends with it") {
  const std::string one =
      "    - let: {x: \"full(1, 1.0)\"}\n"
      "    - if: rank == 0\n"
      "      then: [{send: {tensor: x, dst: 1}}]\n"
      "      else: [{recv: {tensor: x, src: 0}}]\n";
  const auto time = [](const std::string& program, const std::string& fault) {
    return only(bare_text(2, program, "faults: [" + fault + "]\n")).results.prediction.total_time;
  };
  const std::string slow = "{slow_link: {between: [gpu 0, gpu 1], latency: 3 ms";
  CHECK(time(one, slow + "}}") - time(one, "") == 3_ms);
  // It starts when the fault is over, whenever the host had put it in order.
  const std::string later = "    - host: 10 ms\n" + one;
  CHECK(time(later, slow + ", for: 1 ms}}") == time(later, ""));
}

TEST_CASE("what a fault cannot mean is refused with its reason") {
  const auto refused = [](const Rehearsal& ran, Problem::Kind kind, const std::string& words) {
    INFO(problem_of(ran, kind));
    CHECK_FALSE(ran.ran());
    CHECK(problem_of(ran, kind).find(words) != std::string::npos);
  };
  refused(training("{signal: {rank: 0, name: SIGINT}}"), Problem::Kind::unsupported,
          "handling of SIGINT");
  refused(training("{signal: {rank: 0, name: SIGTERM, hook: on_noon}}"), Problem::Kind::invalid,
          "no hook `on_noon`");
  refused(training("{signal: {rank: 0, name: SIGFOO}}"), Problem::Kind::invalid,
          "no signal SIGFOO");
  refused(training("{exception: {rank: 0, hook: training_stop}}"), Problem::Kind::invalid,
          "no hook `training_stop`");
  refused(training("{exception: {rank: 0, for: 1 s}}"), Problem::Kind::invalid, "happens once");
  refused(training("{lost_rank: {rank: 0, for: 1 s}}"), Problem::Kind::unsupported, "launcher");
  refused(training("{lost_node: {node: 4}}"), Problem::Kind::invalid, "no rank is on node 4");
  refused(training("{slow_link: {between: [node 0, node 3]}}"), Problem::Kind::invalid,
          "no node 3 among 1");
  refused(sum_of_two("{lost_rank: {rank: 0, at: step 1}}", 2), Problem::Kind::invalid, "no steps");
  refused(sum_of_two("{exception: {rank: 0}}", 2), Problem::Kind::invalid, "only `main`");
}

TEST_CASE("drawn faults are the seed's, and legal in the scenario that they are drawn for") {
  const Rehearsal healthy = training("");
  const auto drawn = draw_faults(healthy.run, World::simulated, 7, 40);
  CHECK(drawn == draw_faults(healthy.run, World::simulated, 7, 40));
  CHECK(drawn != draw_faults(healthy.run, World::simulated, 8, 40));
  for (const std::string& fault : drawn) {
    INFO(fault);
    CHECK(training(fault).ran());
  }
}

}  // namespace faults_test
