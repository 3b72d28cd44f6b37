// What is shown and judged of a loss that is not computed: no placeholder.
#include <catch2/catch.hpp>

#include "cli/render/json_logged.hpp"
#include "cli/render/render_finding.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace losses_without_values_test {

namespace {

// `one` is given by the scenario, so that it has a value; `loss` is of each rank's own batch.
Rehearsal training(const std::string& numerics, const std::string& how = "") {
  return std::move(
      rehearsed("version: 1\ncluster: {preset: dgx-a100, nodes: 1}\n"
                "model: {input: [4], layers: [{Linear: [4, 2]}], loss: MSELoss}\n"
                "data: {train: {samples: 16, batch_size: 2}}\nverify: {numerics: " +
                numerics +
                "}\n"
                "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1, "
                "log_every_n_steps: 1}\n"
                "program: {training_step: [{log: {name: loss, value: loss" +
                how +
                "}}, "
                "{log: {name: one, value: 1}}]}\n"
                "expect: [metric loss == 0.5 +- 100, metric one == 1]\n")
          .front()
          .result);
}

}  // namespace

TEST_CASE("a loss that is not computed has no value in text and JSON") {
  const Rehearsal ran = training("false");
  const std::string text = render_logged(ran);
  INFO(text);
  CHECK(text.find("loss  not computed, not the same on all ranks (of the last batch)\n") !=
        std::string::npos);
  CHECK(text.find("loss not computed, one 1") != std::string::npos);
  for (const Json& metric : logged_json(ran.logged)) {
    const bool is_loss = metric["key"] == "loss";
    CHECK(metric["by_rank"]["1"].is_null() == is_loss);
  }
  const Json loggers = loggers_json(ran.run.preparation.log->ranks, ran.logged);
  const Json& row = loggers[0]["last_rows"][0]["values"];
  CHECK(row["loss"].is_null());
  CHECK(row["one"] == 1.0);
}

TEST_CASE("an expectation of a loss that is not computed is not judged") {
  const Rehearsal ran = training("false");
  REQUIRE(ran.expectations.size() == 2);
  CHECK_FALSE(ran.expectations[0].judged);
  CHECK(ran.expectations[1].judged);
  CHECK(ran.expectations[1].met);
  const Rehearsal computed = training("true");
  CHECK(computed.expectations[0].judged);
  CHECK(render_logged(computed).find("not computed") == std::string::npos);
}

TEST_CASE("a finding on a loss that is not computed names no number") {
  const Rehearsal ran = training("false", ", on_step: false, on_epoch: true");
  const auto found = std::ranges::find(ran.findings, "LS302", &Finding::code);
  REQUIRE(found != ran.findings.end());
  CHECK(found->why.text == "it is made of the rank's own batches (losses are not computed here)");
}

}  // namespace losses_without_values_test
