// Of a training whose values would take too long, the first steps have values.
#include <catch2/catch.hpp>
#include <string>

#include "cli/render/render.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace first_values_test {

namespace {

// A sample takes 2 x 64 x 128 FLOPs forward and as many for the gradient of the weights: of the one
// layer nothing asks for that of its input. `epochs` of 100 steps of 2 x 256 samples.
std::string training(int64_t epochs, const std::string& backward, const std::string& verify = "") {
  return "version: 1\n"
         "cluster: {preset: dgx-a100, nodes: 1}\n"
         "model: {input: [64], layers: [{Linear: {in_features: 64, out_features: 128, bias: "
         "false}}], loss: MSELoss}\n"
         "optimizer: {SGD: {lr: 0.01}}\n"
         "data: {train: {samples: 51200, batch_size: 256}}\n"
         "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: " +
         std::to_string(epochs) +
         ", logger: false, enable_checkpointing: false}\n"
         "program:\n"
         "  automatic_optimization: false\n"
         "  training_step: [zero_grad, forward, {backward: " +
         backward + "}, optimizer_step]\n" + verify;
}

Rehearsal only(const std::string& text) { return std::move(rehearsed(text).front().result); }

const Finding* wrong_parameters(const Rehearsal& rehearsal) {
  for (const Finding& finding : rehearsal.findings) {
    if (finding.code == "LS306") {
      return &finding;
    }
  }
  return nullptr;
}

}  // namespace

TEST_CASE("the first steps of a long training are compared with one device") {
  // 10^6 steps of 512 samples of 32,768 FLOPs are 1.68e13 FLOPs at 2.5e9 a second, and two layers
  // at 10 us each step: 6,731 s, of which 1.25 s are 185 steps.
  const Rehearsal wrong = only(training(10'000, "loss * world_size"));
  const Finding* const finding = wrong_parameters(wrong);
  REQUIRE(finding != nullptr);
  CHECK(finding->when == "after step 185, the last whose values are computed");
  const std::string text = render_verify(wrong, Style{});
  CHECK(text.find("1000000 steps") != std::string::npos);
  CHECK(text.find("values of steps 1 to 185") != std::string::npos);
  CHECK(text.find("losses from step 186 on") != std::string::npos);

  const Rehearsal right = only(training(10'000, "loss"));
  CHECK(wrong_parameters(right) == nullptr);
  CHECK(exit_code_of(right, false) == ExitCode::ok);
}

TEST_CASE("a training whose values are affordable has them all") {
  const Rehearsal wrong = only(training(1, "loss * world_size"));
  REQUIRE(wrong_parameters(wrong) != nullptr);
  CHECK(wrong_parameters(wrong)->when == "after training");
  CHECK(render_verify(wrong, Style{}).find("values of steps") == std::string::npos);
}

TEST_CASE("who wants no values gets none of the first steps") {
  const Rehearsal wrong =
      only(training(10'000, "loss * world_size", "verify: {numerics: false}\n"));
  CHECK(wrong_parameters(wrong) == nullptr);
  CHECK(render_verify(wrong, Style{}).find("values of steps") == std::string::npos);
}

}  // namespace first_values_test
