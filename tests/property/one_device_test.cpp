// What every training without a defect owes: replicas that agree, and what one device computes.
#include <fmt/core.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "properties/invariants/equals_single_device.hpp"
#include "properties/invariants/replicas_agree.hpp"
#include "properties/logged/rounding.hpp"
#include "tests/property/agreement.hpp"
#include "tests/property/generators.hpp"
#include "tests/property/held.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace one_device_test {

namespace {

constexpr const char* test_name = "a training without a defect is what one device computes";

/// The same samples per step, in one batch. Batch norm sees the batch of its own device only.
TrainingCase on_one_device(const TrainingCase& training) {
  TrainingCase single = training;
  single.strategy = Trained::single;
  single.batch = training.batch * training.ranks;
  single.ranks = 1;
  single.devices = 1;
  single.options = {};
  return single;
}

std::vector<NamedValues> parameters_of(const TrainingCase& training, const Network& network) {
  RunOptions options = world_of(training.ranks);
  options.devices_per_rank = training.devices;
  options.network = &network;
  const Arm arm = run_simulated(
      options, [&](Rank& rank, Seen& seen) { return train_case(rank, &training, &network, seen); });
  for (const RankEnd& end : arm.result.ends) {
    RC_LOG() << end.message << "\n";
    RC_ASSERT(end.kind == RankEnd::Kind::finished);
  }
  std::vector<NamedValues> parameters;
  for (int32_t rank = 0; rank < training.ranks; ++rank) {
    const Seen& seen = arm.seen[static_cast<size_t>(rank)];
    for (size_t index = 0; index < seen.size(); ++index) {
      parameters.push_back({fmt::format("parameter {}", index), rank, seen[index]});
    }
  }
  RC_ASSERT(!parameters.empty());
  return parameters;
}

void expect_none(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    RC_LOG() << finding.code << " " << finding.title << ": " << finding.why.text << "\n";
  }
  RC_ASSERT(findings.empty());
}

void expect_replicas_agree(const std::vector<NamedValues>& parameters) {
  std::vector<ReplicaValues> replicas;
  for (const NamedValues& parameter : parameters) {
    replicas.push_back({parameter.rank, "data parallel 0", parameter.name, parameter.values});
  }
  expect_none(replicas_agree(replicas));
}

bool has_overflowed(const std::vector<NamedValues>& parameters) {
  for (const NamedValues& parameter : parameters) {
    for (int64_t i = 0; i < parameter.values.size(); ++i) {
      if (!std::isfinite(parameter.values.number(i))) {
        return true;
      }
    }
  }
  return false;
}

// Bit for bit, batch norm included: it normalises by its batch, whatever statistics it tracks.
void expect_same_without_checkpointing(TrainingCase training, const std::vector<NamedValues>& run) {
  training.checkpoint = Checkpointed::none;
  const std::vector<NamedValues> plain = parameters_of(training, network_of(training));
  RC_ASSERT(plain.size() == run.size());
  for (size_t i = 0; i < run.size(); ++i) {
    RC_ASSERT(plain[i].values == run[i].values);
  }
}

EqualityRule rule_of(const TrainingCase& training, const Network& network) {
  TrainingSize size;
  size.steps = training.steps;
  size.samples = training.batch * training.ranks * training.accumulate;
  size.parts = training.ranks * training.devices * training.accumulate;
  EqualityRule rule;
  rule.operations = rounded_operations(network, size);
  return rule;
}

}  // namespace

TEST_CASE("a training without a defect is what one device computes") {
  Distribution distribution;
  const bool held = holds(test_name, 150, [&] {
    TrainingCase training = *training_cases();
    training.flaw = TrainingFlaw::none;
    if (training.strategy != Trained::ddp) {
      training.ranks = 1;  // others would train for themselves
    }
    if (training.batch_norm) {  // refuses a part of one sample
      training.batch *= training.devices;
    }
    distribution.draw();
    distribution.count_case();
    const Network network = network_of(training);
    const std::vector<NamedValues> run = parameters_of(training, network);
    expect_replicas_agree(run);
    expect_same_without_checkpointing(training, run);
    if (training.batch_norm) {
      distribution.count("batch norm: replicas only");
      return;
    }
    if (has_overflowed(run)) {
      distribution.count("overflowed");
    }
    distribution.count(std::string(trained_names[static_cast<size_t>(training.strategy)]));
    distribution.count(fmt::format("checkpointed {}",
                                   checkpointed_names[static_cast<size_t>(training.checkpoint)]));
    const TrainingCase single = on_one_device(training);
    expect_none(
        equals_single_device(run, parameters_of(single, network), rule_of(training, network)));
  });
  distribution.print(test_name);
  REQUIRE(held);
  CHECK(distribution.share("batch norm: replicas only") <= 0.7);
  CHECK(distribution.share("overflowed") <= 0.2);
  CHECK(distribution.share("ddp") >= 0.1);
  CHECK(distribution.share("dp") >= 0.02);
  CHECK(distribution.share("checkpointed together") >= 0.05);
}

}  // namespace one_device_test
