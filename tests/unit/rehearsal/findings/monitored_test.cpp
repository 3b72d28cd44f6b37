// One defect, one finding: which of LS109, LS302 and LS305 tells what monitored values did.
#include <catch2/catch.hpp>

#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace monitored_test {

namespace {

std::string text_of(const std::string& value, const std::string& more,
                    const std::string& log = "") {
  return R"yaml(
version: 1
model: {layers: [{Linear: [2, 1]}], input: [2], loss: MSELoss}
optimizer: {SGD: {lr: 0.125}}
data: {train: {samples: 8, batch_size: 2}, val: {samples: 4, batch_size: 2}}
program:
  validation_step: [{log: {name: v, value: ")yaml" +
         value + "\"" + log + R"yaml(}}]
trainer: {accelerator: cpu, devices: 2, strategy: ddp, max_epochs: 3, num_sanity_val_steps: 0,
          )yaml" +
         more;
}

Rehearsal verified(const std::string& text) { return std::move(rehearsed(text).front().result); }

std::vector<std::string> codes(const Rehearsal& ran) {
  std::vector<std::string> all;
  for (const Finding& finding : ran.findings) {
    all.push_back(finding.code);
  }
  return all;
}

bool follows(const Finding& finding, const std::string& part) {
  return std::any_of(finding.follows.begin(), finding.follows.end(),
                     [&](const std::string& text) { return text.find(part) != std::string::npos; });
}

using Codes = std::vector<std::string>;

const std::string checkpoint = "callbacks: [{ModelCheckpoint: {monitor: v, save_top_k: 3}}]}\n";
const std::string falls_and_grows = "(1 - 2.0 * rank) * (3 - epoch)";

}  // namespace

TEST_CASE("a metric of one rank tells which checkpoints the ranks believe in") {
  const Rehearsal ran = verified(text_of(falls_and_grows, checkpoint));
  REQUIRE(codes(ran) == Codes{"LS302"});
  CHECK(follows(ran.findings[0], "epoch=2-step=6.ckpt on rank 0, epoch=0-step=2.ckpt on rank 1"));
  CHECK_FALSE(follows(ran.findings[0], "decide separately on each rank"));
  CHECK(codes(verified(text_of(falls_and_grows, checkpoint, ", sync_dist: true"))).empty());
}

TEST_CASE("values that are equal at the end leave LS109 at the callback") {
  const std::string value =
      "(epoch - 2.0) * (epoch - 1.0) * (1 - 2.0 * rank)";  // 2, 0, 0; -2, 0, 0
  const Rehearsal ran = verified(text_of(value, checkpoint));
  REQUIRE(codes(ran) == Codes{"LS109"});
  CHECK(ran.findings[0].level == Level::error);
  CHECK(ran.findings[0].sites.at(0).label == "monitors `v`");
}

TEST_CASE("replicas that drift apart name the scheduler") {
  const Rehearsal ran = verified(text_of(falls_and_grows,
                                         "}\nlr_scheduler: {ReduceLROnPlateau: {monitor: v, "
                                         "patience: 0, factor: 0.5}}\n"));
  REQUIRE(codes(ran) == Codes{"LS302"});  // one defect, one finding
  CHECK(ran.findings[0].also == std::vector<std::string>{"LS305"});
  CHECK(follows(ran.findings[0], "ReduceLROnPlateau monitors it"));
  CHECK(follows(ran.findings[0], "does not hold the same"));
  CHECK(ran.findings[0].fix.at(0).find("sync_dist") != std::string::npos);
}

TEST_CASE("an exception of a callback is reported once, with what there is to monitor") {
  const Rehearsal ran = verified(text_of("1.0", "callbacks: [{EarlyStopping: {monitor: w}}]}\n"));
  REQUIRE(ran.findings.size() == 1);
  CHECK(ran.findings[0].fix.at(0) == "log `w` on every rank, or monitor one of `v`");
}

TEST_CASE("reductions of different keys are LS303, of the same keys in a different order LS103") {
  const auto logs = [](const std::string& first, const std::string& second) {
    return R"yaml(
version: 1
data: {train: {samples: 8, batch_size: 2}, val: {samples: 4, batch_size: 2}}
trainer: {accelerator: cpu, devices: 2, strategy: ddp, max_epochs: 1, num_sanity_val_steps: 0}
program:
  validation_step:
    - if: rank == 0
      then: [{log_dict: {dictionary: {a: 1.0, b: 1.0}, sync_dist: true}}]
      else: [{log_dict: {dictionary: {)yaml" +
           first + ": 1.0, " + second + ": 1.0}, sync_dist: true}}]\n";
  };
  CHECK(codes(verified(logs("a", "b"))).empty());
  CHECK(codes(verified(logs("b", "a"))) == Codes{"LS103"});
  CHECK(codes(verified(logs("a", "c"))) == Codes{"LS303"});
}

TEST_CASE("a scheduler that only some ranks step is not a matter of the monitored value") {
  const Rehearsal ran = verified(
      "version: 1\nmodel: {layers: [{Linear: [2, 1]}], input: [2], loss: MSELoss}\n"
      "optimizer: {SGD: {lr: 0.125}}\n"
      "lr_scheduler: {ReduceLROnPlateau: {monitor: v, patience: 0, factor: 0.5}}\n"
      "data: {train: {samples: 8, batch_size: 2}, val: {samples: 4, batch_size: 2}}\n"
      "trainer: {accelerator: cpu, devices: 2, strategy: ddp, max_epochs: 3, "
      "num_sanity_val_steps: 0}\n"
      "program:\n  validation_step: [{log: {name: v, value: 1.0, sync_dist: true}}]\n"
      "  lr_scheduler_step: [{if: rank == 0, then: [lr_scheduler_step]}]\n");
  REQUIRE(codes(ran) == Codes{"LS305"});
  CHECK(ran.findings[0].fix.front().starts_with("let every rank step ReduceLROnPlateau"));
}

TEST_CASE("a monitored value that is no number is reported") {
  const Rehearsal ran = verified(text_of("inf * 0.0", checkpoint, ", sync_dist: true"));
  REQUIRE(codes(ran) == Codes{""});
  CHECK(ran.findings[0].title == "ModelCheckpoint monitors `v`, which is nan from epoch 0 on");
  CHECK(ran.findings[0].level == Level::warning);
}

TEST_CASE("a second fit that trains no more leaves what monitors as it was") {
  const std::string two_fits = text_of("4.0 + epoch",
                                       "}\nlr_scheduler: {ReduceLROnPlateau: {monitor: v, "
                                       "patience: 0, factor: 0.5}}\n",
                                       ", sync_dist: true");
  std::string text = two_fits;
  text.replace(text.find("program:\n"), 9, "program:\n  main: [fit, fit]\n");
  CHECK(codes(verified(text)).empty());
}

}  // namespace monitored_test
