// The `model` section as a network.
#include <catch2/catch.hpp>

#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE(
    "activation_checkpointing marks the model's blocks or attention, or says that it has none") {
  const auto prepared = [](const std::string& model) {
    return prepare(
        scenario_of("version: 1\nmodel: " + model + "\ntrainer: {devices: 1, max_epochs: 1}\n"),
        standard_strategies());
  };
  const auto segments = [&](const std::string& model) {
    return prepared(model).network->segments.size();
  };
  const auto notes = [&](const std::string& model) {
    std::string text;
    for (const Problem& problem : prepared(model).problems) {
      text += problem.message + "\n";
    }
    return text;
  };
  CHECK(segments("{preset: gpt2, activation_checkpointing: full}") == 12);
  CHECK(segments("{preset: gpt2, activation_checkpointing: selective}") == 12);
  CHECK(segments("{preset: gpt2, activation_checkpointing: none}") == 0);
  CHECK(segments(
            "{layers: [{Linear: [4, 4]}, {repeat: 3, checkpoint: fairscale, layers: [{Linear: "
            "[4, 4]}, ReLU]}, {Linear: {in_features: 4, out_features: 2, checkpoint: true}}]}") ==
        4);
  CHECK(notes("{preset: mlp, activation_checkpointing: selective}").find("has no attention") !=
        std::string::npos);
  CHECK(notes("{preset: mlp, activation_checkpointing: full}").find("has no repeated block") !=
        std::string::npos);
  CHECK(prepared("{preset: mlp, activation_checkpointing: full}").runnable());
}

TEST_CASE("the shortcut of a residual is built") {
  const Preparation preparation = prepare(
      scenario_of(
          "version: 1\nmodel: {layers: [{Residual: {layers: [{Linear: [4, 2]}], shortcut: "
          "[{Linear: {in_features: 4, out_features: 2, name: project}}]}}], loss: MSELoss}\n"
          "trainer: {devices: 1, max_epochs: 1}\n"),
      standard_strategies());
  REQUIRE(preparation.network);
  CHECK(preparation.network->parameter_elements() == 2 * (4 * 2 + 2));
}
