// LibTorch's updates against those that Python's torch.optim has recorded.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/libtorch/layer_case.hpp"
#include "tests/unit/oracle/recorded_optimizer.hpp"

namespace lockstep::libtorch_test::recorded_optimizers_test {

using namespace lockstep::test;
using nlohmann::json;

namespace {

OptimizerKind kind_of(const std::string& name) {
  for (const OptimizerRule* const rule : optimizer_rules()) {
    if (rule->name() == name) {
      return rule->defaults().kind;
    }
  }
  FAIL("no optimizer " + name);
  return OptimizerKind::sgd;
}

OptimizerSettings settings_of(const json& setting) {
  const auto given = setting["optimizer"].begin();
  const OptimizerRule& rule = rule_of(kind_of(given.key()));
  OptimizerSettings settings = rule.defaults();
  for (const OptimizerArgument& argument : rule.arguments()) {
    const auto found = given.value().find(argument.name);
    if (found == given.value().end()) {
      continue;
    }
    if (argument.second != nullptr) {
      settings.*argument.number = (*found)[0];
      settings.*argument.second = (*found)[1];
    } else if (argument.number != nullptr) {
      settings.*argument.number = *found;
    } else {
      settings.*argument.truth = *found;
    }
  }
  return settings;
}

}  // namespace

TEST_CASE("LibTorch's updates are those of torch.optim") {
  const Execute execute = libtorch();
  const std::vector<json> settings = recorded_optimizers();
  CHECK(settings.size() >= 68);
  for (const json& setting : settings) {
    INFO(setting["optimizer"].dump() << " " << setting["dtype"]);
    const DType dtype = setting["dtype"] == "fp32" ? DType::fp32 : DType::fp64;
    const auto steps = std::ssize(setting["steps"]);
    for (const bool is_weight : {true, false}) {
      const std::vector<Values> ours =
          updated_by(settings_of(setting), dtype, is_weight, steps,
                     [&](const Op& op, Operands& operands) { execute(op, operands, nullptr); });
      double apart = 0;
      for (int64_t step = 0; step < steps; ++step) {
        const json& theirs = setting["steps"][static_cast<size_t>(step)][is_weight ? 0 : 1];
        for (int64_t i = 0; i < std::ssize(theirs); ++i) {
          apart = std::max(apart, std::abs(ours[static_cast<size_t>(step)].number(i) -
                                           theirs[static_cast<size_t>(i)].get<double>()));
        }
      }
      // The same calls of the same library; only the order of a fused multiply and add may differ.
      CHECK(apart <= 64 * unit_roundoff(dtype));
    }
  }
}

// No part of torch, so that nothing is recorded of them.
TEST_CASE("Lion and Lamb are the same by LibTorch as in the reference") {
  for (const OptimizerKind kind : {OptimizerKind::lion, OptimizerKind::lamb}) {
    for (const bool other : {false, true}) {
      OptimizerSettings settings = rule_of(kind).defaults();
      settings.lr = 0.1;
      settings.weight_decay = 0.05;
      settings.is_fused = other && kind == OptimizerKind::lion;
      settings.debias = other;
      for (const DType dtype : {DType::fp32, DType::fp64}) {
        const auto steps_of = [&](const Execute& execute) {
          return updated_by(settings, dtype, true, 8, [&](const Op& op, Operands& operands) {
            execute(op, operands, nullptr);
          });
        };
        const std::vector<Values> ours = steps_of(libtorch());
        const std::vector<Values> theirs = steps_of(reference());
        for (size_t step = 0; step < ours.size(); ++step) {
          CHECK(distance(ours[step], theirs[step]) <= 64 * unit_roundoff(dtype));
        }
      }
    }
  }
}

}  // namespace lockstep::libtorch_test::recorded_optimizers_test
