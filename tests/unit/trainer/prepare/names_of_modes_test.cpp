// What a wrong name of an argument is answered with: those that there are.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace names_of_modes_test {

namespace {

std::string text_of(const std::string& strategy, const std::string& lightning) {
  return "version: 1\nversions: {lightning: \"" + lightning +
         "\"}\ncluster: {preset: dgx-a100, nodes: 1}\n"
         "model: {input: [4], layers: [{Linear: [4, 2]}]}\n"
         "data: {train: {samples: 40, batch_size: 2}}\n"
         "trainer: {accelerator: gpu, devices: 4, max_epochs: 1, strategy: " +
         strategy + "}\n";
}

bool is_said(const Preparation& preparation, Problem::Kind kind, const std::string& text) {
  return std::ranges::any_of(preparation.problems, [&](const Problem& problem) {
    return problem.kind == kind &&
           (problem.message + "; " + problem.remedy).find(text) != std::string::npos;
  });
}

Preparation prepared(const std::string& strategy, const std::string& lightning) {
  return prepare(scenario_of(text_of(strategy, lightning)), standard_strategies());
}

}  // namespace

TEST_CASE("an unknown mode lists the modes, or the nearest") {
  CHECK(is_said(prepared("{ParameterServerStrategy: {mode: hogwild}}", "1.8"),
                Problem::Kind::invalid, "its modes are sync, batched, async, ssp"));
  CHECK(is_said(prepared("{ParameterServerStrategy: {mode: asinc}}", "1.8"), Problem::Kind::invalid,
                "did you mean `async`?"));
  const auto with_peers = [](const std::string& mode) {
    return prepared(
        "{BaguaStrategy: {algorithm: decentralized, peer_selection_mode: " + mode + "}}", "1.9");
  };
  CHECK(is_said(with_peers("ring"), Problem::Kind::refused, "its modes are all and shift_one"));
  CHECK(is_said(with_peers("shift_two"), Problem::Kind::refused, "did you mean `shift_one`?"));
}

// wrap.py, ModuleWrapPolicy: isinstance of any of the classes.
TEST_CASE("a note names a class of a wrap policy that the model lacks") {
  const Preparation some = prepared("{FSDPStrategy: {auto_wrap_policy: [Linear, Conv2d]}}", "2.4");
  CHECK(some.runnable());
  CHECK(is_said(some, Problem::Kind::note, "no module of this model is a Conv2d"));
  const Preparation none = prepared("{FSDPStrategy: {auto_wrap_policy: [Conv1d, Conv2d]}}", "2.4");
  CHECK_FALSE(none.runnable());
  CHECK(is_said(none, Problem::Kind::invalid, "no module of this model is a Conv1d"));
}

}  // namespace names_of_modes_test
