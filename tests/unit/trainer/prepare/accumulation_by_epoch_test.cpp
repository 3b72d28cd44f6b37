// trainer.py of 1.x makes a GradientAccumulationScheduler of a map, which 2.0 takes no more.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace accumulation_by_epoch_test {

namespace {

Preparation prepared(const std::string& batches, const std::string& versions) {
  return prepare(
      scenario_of("version: 1\nmodel: {input: [4], layers: [{Linear: [4, 2]}]}\n"
                  "trainer: {accelerator: cpu, devices: 2, strategy: ddp, max_epochs: 3, "
                  "accumulate_grad_batches: " +
                  batches + "}\ndata: {train: {samples: 40, batch_size: 2}}\n" + versions),
      standard_strategies());
}

std::string why_not(const Preparation& preparation) {
  for (const Problem& problem : preparation.problems) {
    if (problem.kind == Problem::Kind::unsupported) {
      return problem.message + "; " + problem.remedy;
    }
  }
  return "";
}

}  // namespace

TEST_CASE("accumulation by epoch is not modelled, by either of its names") {
  const std::string versions = "versions: {lightning: \"1.9\"}\n";
  const std::string by_epoch = "{0: 1, 2: 4}";
  CHECK(why_not(prepared(by_epoch, versions))
            .find("`accumulate_grad_batches` by epoch is not modelled yet") != std::string::npos);
  const std::string today = why_not(prepared(by_epoch, ""));
  CHECK(today.find("from Lightning 2.0 on `accumulate_grad_batches` takes an int") !=
        std::string::npos);
  CHECK(today.find("GradientAccumulationScheduler") != std::string::npos);
  CHECK(prepared("4", versions).runnable());
}

// pytorch_lightning/strategies/horovod.py, setup.
TEST_CASE("Horovod refuses accumulation by epoch") {
  const Preparation preparation =
      prepare(scenario_of("version: 1\nversions: {lightning: \"1.8\"}\n"
                          "launcher: {horovodrun: {np: 2}}\n"
                          "model: {input: [4], layers: [{Linear: [4, 2]}]}\n"
                          "trainer: {accelerator: cpu, strategy: horovod, max_epochs: 3, "
                          "accumulate_grad_batches: {0: 1, 1: 4}}\n"
                          "data: {train: {samples: 40, batch_size: 2}}\n"),
              standard_strategies());
  CHECK(std::ranges::any_of(preparation.problems, [](const Problem& problem) {
    return problem.kind == Problem::Kind::refused && problem.code == "LS501" &&
           problem.message.find("Horovod currently does not support different") !=
               std::string::npos;
  }));
}

}  // namespace accumulation_by_epoch_test
