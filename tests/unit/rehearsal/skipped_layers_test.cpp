// A forward that leaves layers out whose neighbours do not fit.
#include <algorithm>
#include <catch2/catch.hpp>

#include "rehearsal/outcome.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace skipped_layers_test {

namespace {

Rehearsal without(const std::string& skipped, const std::string& layers, const std::string& loss) {
  return std::move(
      rehearsed("version: 1\ncluster: {preset: dgx-a100, nodes: 1}\n"
                "model: {input: [8], layers: [" +
                layers + "], loss: " + loss +
                "}\ndata: {train: {samples: 16, batch_size: 4}}\n"
                "trainer: {accelerator: gpu, devices: 2, strategy: "
                "ddp_find_unused_parameters_true, max_epochs: 1, num_sanity_val_steps: 0}\n"
                "program: {training_step: [{forward: {skip: [" +
                skipped + "]}}]}\n")
          .front()
          .result);
}

void check_raised(const Rehearsal& ran, const std::string& message, const std::string& remedy) {
  INFO(message);
  CHECK(outcome_of(ran) == cli::Outcome::raises);
  const auto found = std::ranges::find_if(ran.findings, [&](const Finding& finding) {
    return finding.title.find(message) != std::string::npos;
  });
  REQUIRE(found != ran.findings.end());
  CHECK(found->title.find("; " + remedy) != std::string::npos);
  CHECK_FALSE(found->sites.empty());
}

const std::string remedy = "skip layers that give what they take in size";

}  // namespace

// torch: "The size of tensor a (8) must match the size of tensor b (4) at non-singleton dimension
// 1" of a loss, "mat1 and mat2 shapes cannot be multiplied" of a Linear.
TEST_CASE("an output that the loss cannot compare with its target is an error") {
  const std::string layers = "{Linear: [8, 8]}, ReLU, {Linear: [8, 4]}";
  for (const std::string loss : {"MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss"}) {
    check_raised(without("\"2\"", layers, loss),
                 "forward cannot run without 2: the loss compares an output of [8] with a target "
                 "of [4] per sample",
                 remedy);
  }
}

TEST_CASE("a layer that does not take what comes is an error, also behind one that does") {
  check_raised(
      without("\"1\"", "{Linear: [8, 16]}, {Linear: [16, 8]}, {Linear: [8, 4]}", "MSELoss"),
      "forward cannot run without 1: `2` takes samples of [8] and gets [16]", remedy);
  check_raised(without("\"0\"", "{Linear: [8, 16]}, ReLU, {Linear: [16, 4]}", "MSELoss"),
               "forward cannot run without 0: `2` takes samples of [16] and gets [8]", remedy);
  check_raised(without("\"0.2\"",
                       "{Residual: {layers: [{Linear: [8, 16]}, ReLU, {Linear: [16, 8]}]}}, "
                       "{Linear: [8, 4]}",
                       "MSELoss"),
               "the branches of `0` have [8] and [16] per sample", remedy);
}

// ReLU runs at any size, MSELoss stretches a dimension of 1, and CrossEntropyLoss takes more scores
// than there are classes: torch computes something, with sizes that the model has not.
TEST_CASE("sizes that torch takes, and the model has not, are not modelled") {
  const auto outcome = [](const std::string& skipped, const std::string& layers,
                          const std::string& loss) {
    return outcome_of(without(skipped, layers, loss));
  };
  CHECK(outcome("\"0\", \"2\"", "{Linear: [8, 16]}, ReLU, {Linear: [16, 8]}", "MSELoss") ==
        cli::Outcome::unsupported);
  CHECK(outcome("\"1\"", "{Linear: [8, 1]}, {Linear: [1, 4]}", "MSELoss") ==
        cli::Outcome::unsupported);
  CHECK(outcome("\"1\"", "{Linear: [8, 8]}, {Linear: [8, 4]}", "CrossEntropyLoss") ==
        cli::Outcome::unsupported);
}

TEST_CASE("a layer that the model has not is named with one that it has") {
  check_raised(
      without("haed", "{Linear: [8, 8], name: body}, {Linear: [8, 4], name: head}", "MSELoss"),
      "forward cannot skip `haed`: no layer of the model has this name", "did you mean `head`?");
  check_raised(
      without("tail", "{Linear: [8, 8], name: body}, {Linear: [8, 4], name: head}", "MSELoss"),
      "no layer of the model has this name", "the layers are body, head");
}

}  // namespace skipped_layers_test
