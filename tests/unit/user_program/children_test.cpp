#include <catch2/catch.hpp>
#include <string>

#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace children_test {

namespace {

Ran trained(const std::string& strategy, const std::string& program,
            const std::string& devices = "2") {
  return run_text(
      "version: 1\nmodel: {layers: [{Linear: [4, 2]}], input: [4]}\n"
      "data: {train: {samples: 16, batch_size: 4}}\n"
      "trainer: {accelerator: cpu, devices: " +
          devices + ", max_epochs: 1, strategy: " + strategy + "}\nprogram:\n" + program,
      standard_strategies());
}

const std::string counts =
    "  __init__: [{let: {self.seen: 0}}]\n"
    "  training_step: [{let: {self.seen: self.seen + 1}}]\n";

}  // namespace

// 16 samples, 2 ranks, batches of 4: two steps a rank.
TEST_CASE("what children bind on the module is lost after fit, and reported where it is read") {
  for (const char* strategy : {"ddp_spawn", "ddp_fork", "ddp_notebook"}) {
    INFO(strategy);
    const Ran lost = trained(strategy, "  main: [fit, {assert: self.seen == 0}]\n" + counts);
    REQUIRE(lost.log(0).findings.size() == 1);
    CHECK(lost.log(0).findings[0].code == "LS308");
    CHECK(lost.log(1).findings.empty());
    CHECK(lost.log(0).steps == 2);
  }
  const Ran kept = trained("ddp", "  main: [fit, {assert: self.seen == 2}]\n" + counts);
  CHECK(kept.log(0).findings.empty());
}

TEST_CASE("a single process is spawned too, and loses what it binds") {
  const Ran lost = trained("ddp_spawn", "  main: [fit, {assert: self.seen == 0}]\n" + counts, "1");
  REQUIRE(lost.log(0).findings.size() == 1);
  CHECK(lost.log(0).findings[0].code == "LS308");
}

TEST_CASE("children begin with what the main process has bound") {
  const Ran ran = trained("ddp_spawn",
                          "  main: [{let: {self.start: 5}}, fit, {assert: self.start == 5}]\n"
                          "  training_step: [{assert: self.start == 5}]\n");
  CHECK(ran.log(0).findings.empty());
}

TEST_CASE("what the main process binds again is its own, and logged values come back") {
  const Ran ran =
      trained("ddp_spawn",
              "  main: [fit, {let: {self.seen: 7}}, {assert: self.seen == 7}, "
              "{assert: \"callback_metrics['steps'] == 2\"}]\n" +
                  counts + "  on_train_epoch_end: [{log: {name: steps, value: self.seen}}]\n");
  CHECK(ran.log(0).findings.empty());
}

TEST_CASE("spawned, forked and scripted processes make the same calls") {
  const Ran script = trained("ddp", "  main: [fit]\n");
  for (const char* strategy : {"ddp_spawn", "ddp_fork", "ddp_notebook"}) {
    const Ran ran = trained(strategy, "  main: [fit]\n");
    for (const OpKind kind : {OpKind::all_reduce, OpKind::broadcast, OpKind::all_gather}) {
      CHECK(count(ran.result, 1, kind) == count(script.result, 1, kind));
    }
    CHECK(ran.preparation.strategy == strategy);
  }
}

}  // namespace children_test
