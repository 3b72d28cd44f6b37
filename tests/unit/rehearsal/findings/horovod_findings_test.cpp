// What is reported of ranks that do not meet under Horovod: names, ranks, cause, a fix that helps.
#include <catch2/catch.hpp>

#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace horovod_findings_test {

namespace {

Rehearsal named_calls(const std::string& statements) {
  return std::move(
      rehearsed(bare_text(3, statements, "process_group: {backend: horovod}\n")).front().result);
}

Rehearsal training(
    const std::string& more, const std::string& frozen = "",
    const std::string& start =
        "launcher: {horovodrun: {np: 2}}\ntrainer: {strategy: horovod, devices: 1, ") {
  return std::move(
      rehearsed(
          "version: 1\nversions: {lightning: \"1.6.5\"}\n"
          "cluster: {preset: dgx-a100, nodes: 1}\n"
          "model: {input: [4], layers: [{Linear: [4, 4]}, ReLU, {Linear: [4, 2]" +
          frozen + "}], loss: MSELoss}\ndata: {train: {samples: 32, batch_size: 2}}\n" + start +
          "accelerator: gpu, max_epochs: 1, num_sanity_val_steps: 0, limit_val_batches: 0}\n" +
          more)
          .front()
          .result);
}

const Finding& only(const Rehearsal& ran) {
  REQUIRE(ran.problems.empty());
  for (const Finding& finding : ran.findings) {
    UNSCOPED_INFO(finding.code << " " << finding.title);
  }
  REQUIRE(ran.findings.size() == 1);
  return ran.findings.front();
}

std::string lines(const std::vector<std::string>& all) {
  std::string text;
  for (const std::string& line : all) {
    text += line + "\n";
  }
  return text;
}

bool has_guard(const Finding& finding, const std::string& label) {
  return std::ranges::any_of(finding.sites, [&](const FindingSite& site) {
    return site.role == SiteRole::guard && site.label == label;
  });
}

}  // namespace

TEST_CASE("a horovod name that an `if` keeps a rank from is fixed by taking the call out of it") {
  const Rehearsal ran = named_calls(
      "    - let: {x: \"full(2, 1.0)\", y: \"full(2, 1.0)\"}\n"
      "    - {if: rank != 2, then: [{all_reduce: {tensor: x, name: loss}}]}\n"
      "    - all_reduce: {tensor: y, name: z}\n");
  const Finding& finding = only(ran);
  CHECK(finding.code == "LS101");
  CHECK(finding.title == "ranks 0-1 wait forever for allreduce.loss: rank 2 never hands it over");
  CHECK(has_guard(finding, "true on ranks 0-1, false on rank 2"));
  CHECK_THAT(lines(finding.fix), Catch::Contains("every rank must hand over allreduce.loss: take "
                                                 "the call out of the `if` on `rank != 2`"));
  CHECK_THAT(lines(finding.fix), !Catch::Contains("async") && !Catch::Contains("same name"));
  CHECK_THAT(lines(finding.python),
             Catch::Contains("hvd.allreduce_(x, name=\"loss\")   # on every rank"));
}

TEST_CASE("a horovod name that is left out at the end names who waited and who ended") {
  const Rehearsal ran = named_calls(
      "    - let: {x: \"full(2, 1.0)\"}\n"
      "    - {if: rank != 2, then: [{all_reduce: {tensor: x, name: loss}}]}\n");
  const Finding& finding = only(ran);
  CHECK(finding.code == "LS101");
  CHECK(finding.title ==
        "ranks 0-1 wait for allreduce.loss, and raise: rank 2 never hands it over");
  CHECK(has_guard(finding, "true on ranks 0-1, false on rank 2"));
  CHECK_THAT(lines(finding.fix), Catch::Contains("take the call out of the `if`"));
  REQUIRE(finding.did.size() == 2);
  CHECK_THAT(finding.did[0].operation, Catch::Contains("Horovod has been shut down"));
  CHECK(finding.did[1].operation == "ended");
}

TEST_CASE("each horovod rank that waits for another name first starts them all") {
  const Rehearsal ran = named_calls(
      "    - let: {a: \"full(2, 1.0)\", b: \"full(2, 1.0)\"}\n"
      "    - if: rank == 0\n"
      "      then: [{all_reduce: {tensor: a, name: a}}, {all_reduce: {tensor: b, name: b}}]\n"
      "      else: [{all_reduce: {tensor: b, name: b}}, {all_reduce: {tensor: a, name: a}}]\n");
  CHECK_THAT(lines(only(ran).fix), Catch::Contains("start them with `async: true`"));
}

TEST_CASE("two spellings of a horovod name in both ways of an `if` are reported") {
  const Rehearsal ran = named_calls(
      "    - let: {a: \"full(2, 1.0)\"}\n"
      "    - if: rank == 0\n"
      "      then: [{all_reduce: {tensor: a, name: layer.weight}}]\n"
      "      else: [{all_reduce: {tensor: a, name: layer.wieght}}]\n");
  CHECK_THAT(lines(only(ran).fix),
             Catch::Contains("give both the same name if they are one tensor"));
}

TEST_CASE("horovod tensors of one name that differ are named, with their ranks") {
  const Rehearsal ran = named_calls(
      "    - let: {x: \"full(2 + rank % 2, 1.0)\"}\n"
      "    - all_reduce: {tensor: x, name: grad}\n");
  const Finding& finding = only(ran);
  CHECK(finding.code == "LS104");
  CHECK(finding.title ==
        "the ranks hand over different tensors under one name: allreduce.grad is fp32 [2] on ranks "
        "0, 2, fp32 [3] on rank 1");
}

TEST_CASE("horovod ranks that reduce otherwise under one name are named") {
  const Rehearsal ran = named_calls(
      "    - let: {x: \"full(2, 1.0)\"}\n"
      "    - if: rank == 2\n"
      "      then: [{all_reduce: {tensor: x, name: grad, op: sum}}]\n"
      "      else: [{all_reduce: {tensor: x, name: grad}}]\n");
  CHECK_THAT(only(ran).title, Catch::Contains("fp32 [2] reduced by avg on ranks 0, 1, fp32 [2] "
                                              "reduced by sum on rank 2"));
}

TEST_CASE("a value logged by one horovod rank tells of the join before it") {
  const Rehearsal ran = training(
      "program: {training_step: [forward, {if: rank == 0, then: [{log: {name: a, value: loss, "
      "sync_dist: true}}]}]}\n");
  const Finding& finding = only(ran);
  CHECK(finding.code == "LS101");
  CHECK(finding.title == "rank 0 waits in the join of log: rank 1 never calls it");
  CHECK(has_guard(finding, "true on rank 0, false on rank 1"));
  CHECK_THAT(lines(finding.fix), Catch::Contains("call `log` with sync_dist on every rank"));
  CHECK_THAT(lines(finding.follows), Catch::Contains("gives zeros to the averages of the others"));
}

TEST_CASE("the optimizer's state that a horovod rank lacks is named, with what freezes it") {
  const Rehearsal ran =
      training("optimizer: {SGD: {lr: 0.01, momentum: 0.9}}\n", ", frozen_on: [1]");
  const Finding& finding = only(ran);
  CHECK(finding.code == "LS101");
  CHECK(finding.title ==
        "rank 0 waits forever for broadcast.momentum_buffer.3, broadcast.momentum_buffer.4: rank 1 "
        "never hands them over");
  CHECK(finding.why.text == "a layer is not frozen on all ranks");
  CHECK_THAT(lines(finding.fix), Catch::Contains("freeze the same layers on every rank"));
}

TEST_CASE("options of rank 0's optimizer that a horovod rank does not know are named") {
  const Rehearsal ran = training("optimizer: {SGD: {lr: 0.01}}\n", ", frozen_on: [1]");
  const Finding& finding = only(ran);
  CHECK(finding.code == "LS104");
  CHECK(finding.title == "rank 1 raised 'KeyError: 'momentum_buffer.3''");
  CHECK(finding.why.text == "a layer is not frozen on all ranks");
  CHECK_THAT(lines(finding.follows), Catch::Contains("Horovod shuts down on all ranks: rank 0"));
}

TEST_CASE("a lost horovod rank is an error at once, and horovodrun ends the job") {
  const std::string lost = "faults: [{lost_rank: {rank: 1, at: step 2}}]\n";
  const Rehearsal ran = training(lost);
  const std::string follows = lines(only(ran).follows);
  CHECK_THAT(follows, Catch::Contains("within milliseconds all others raise HorovodInternalError, "
                                      "and horovodrun ends all processes"));
  CHECK_THAT(follows, !Catch::Contains("without limit"));
  const Rehearsal ddp = training("process_group: {backend: gloo}\n" + lost, "",
                                 "trainer: {strategy: ddp, devices: 2, ");
  CHECK_THAT(lines(ddp.findings.front().follows), Catch::Contains("Connection closed by peer"));
}

TEST_CASE("an exception of one horovod rank is one finding") {
  const Rehearsal ran = training("faults: [{exception: {rank: 1, at: step 2}}]\n");
  const Finding& finding = only(ran);
  CHECK_THAT(finding.title, Catch::Contains("rank 1 raised 'injected exception"));
  CHECK_THAT(lines(finding.follows), Catch::Contains("rank 0 raises 'HorovodInternalError"));
}

}  // namespace horovod_findings_test
