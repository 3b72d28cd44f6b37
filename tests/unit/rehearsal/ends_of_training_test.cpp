// Trainings that never begin, never end, or meet what is not modelled: each is reported as what it
// is.
#include <catch2/catch.hpp>

#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace ends_of_training_test {

namespace {

Rehearsal trained(const std::string& trainer, const std::string& data,
                  const std::string& more = "") {
  return std::move(rehearsed("version: 1\ncluster: {preset: dgx-a100, nodes: 1}\n"
                             "trainer: {accelerator: gpu, devices: 2, num_sanity_val_steps: 0, " +
                             trainer + "}\ndata: {train: {" + data + "}}\n" + more)
                       .front()
                       .result);
}

std::vector<std::string> messages_of(const Rehearsal& ran, Problem::Kind kind) {
  std::vector<std::string> messages;
  for (const Problem& problem : ran.problems) {
    if (problem.kind == kind) {
      messages.push_back(problem.message);
    }
  }
  return messages;
}

}  // namespace

TEST_CASE("a loader without a batch on any rank is a warning, as Lightning's log has it") {
  const std::string ddp = "strategy: ddp, max_epochs: 1";
  const Rehearsal dropped = trained(ddp, "samples: 8, batch_size: 8, drop_last: true");
  REQUIRE(dropped.findings.size() == 1);
  CHECK(dropped.findings.front().title == "nothing is trained: no rank has a batch");
  CHECK(dropped.findings.front().level == Level::warning);
  CHECK(exit_code_of(dropped, false) == ExitCode::ok);
  CHECK(trained(ddp, "samples: 16, batch_size: 8, drop_last: true").findings.empty());
}

TEST_CASE("a rank that alone has no batch raises, and the others wait for it") {
  const Rehearsal ran = trained("strategy: ddp, max_epochs: 1", "batches: 2 * (rank == 0)");
  REQUIRE(ran.findings.size() == 1);
  CHECK(ran.findings.front().code == "LS101");
  CHECK(ran.findings.front().title.find("within local rank has zero length") != std::string::npos);
}

TEST_CASE("a training that nothing ends is bad input, unless something may stop it") {
  const std::string endless = "strategy: ddp, max_epochs: -1";
  const std::string data = "samples: 32";
  CHECK(messages_of(trained(endless, data), Problem::Kind::invalid).size() == 1);
  CHECK(trained(endless + ", max_steps: 3", data).problems.empty());
  CHECK(trained(endless + ", fast_dev_run: true", data).problems.empty());
  const Rehearsal stopped = trained(
      endless, data, "program: {training_step: [{should_stop: global_step == 4}, forward]}\n");
  CHECK(stopped.problems.empty());
  CHECK(stopped.run.ran);
}

TEST_CASE("what a hook does and is not modelled ends with that alone, not with a finding") {
  const Rehearsal ran = trained(
      "strategy: ddp, max_epochs: 1", "samples: 32",
      "model: {input: [4], layers: [{Linear: [4, 2]}, {Buffer: {shape: [3], name: mask}}]}\n"
      "program: {training_step: [{let: {self.mask: \"full(5, 1.0)\"}}, forward]}\n");
  CHECK(messages_of(ran, Problem::Kind::unsupported) ==
        std::vector<std::string>{"a tensor of a different shape, type or device for the registered "
                                 "buffer `self.mask` is not modelled"});
  CHECK(ran.findings.empty());
  CHECK(exit_code_of(ran, false) == ExitCode::missing_capability);
}

TEST_CASE("an attribute that a spawned process took with it is one finding") {
  const Rehearsal ran = trained("strategy: ddp_spawn, max_epochs: 1", "samples: 32",
                                "program:\n  main: [fit, {assert: self.seen == 2}]\n"
                                "  on_train_start: [{let: {self.seen: 2}}]\n");
  REQUIRE(ran.findings.size() == 1);
  CHECK(ran.findings.front().code == "LS308");
}

TEST_CASE("the remedy for padding heals: no other finding comes of it") {
  const auto evaluated = [](const std::string& loader, const std::string& program) {
    return std::move(rehearsed("version: 1\ncluster: {preset: dgx-a100, nodes: 1}\n"
                               "metrics: {m: MeanMetric}\n"
                               "trainer: {accelerator: gpu, devices: 3, strategy: ddp, "
                               "max_epochs: 1, num_sanity_val_steps: 0}\n"
                               "data: {train: {samples: 9, batch_size: 3}, val: {batch_size: 3, "
                               "values: {x: sample * 1.0}, " +
                               loader + "}}\nprogram: {validation_step: [" + program + "]}\n")
                         .front()
                         .result);
  };
  const std::string averaged = "{log: {name: v, value: mean(x), sync_dist: true}}";
  const std::string object = "{update: {metric: m, preds: x}}, {log: {name: v, value: m}}";
  const Rehearsal padded = evaluated("samples: 8", averaged);
  REQUIRE(padded.findings.size() == 1);
  CHECK(
      padded.findings.front().fix.at(0).starts_with("make the number of samples a multiple of "
                                                    "the 3 ranks"));
  CHECK(evaluated("samples: 9", averaged).findings.empty());
  const Rehearsal healed = evaluated("samples: 8, sampler: unrepeated", object);
  CHECK(healed.findings.empty());
  CHECK(healed.logged.front().ranks.front().value == Approx(3.5));
  // Without a sample for every rank the unpadded sampler leaves one without a batch: it raises.
  const Rehearsal few = evaluated("samples: 2", averaged);
  REQUIRE(few.findings.size() == 1);
  CHECK(few.findings.front().fix.at(0) == "give every rank a sample of its own: 3 at least");
}

}  // namespace ends_of_training_test
