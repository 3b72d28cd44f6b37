// What is predicted does not depend on whether values are computed beside.
#include <catch2/catch.hpp>

#include "cli/render/json.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

namespace lockstep::cli::prediction_without_values_test {
namespace {

std::string training(const std::string& program, const std::string& more = "") {
  return "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\nmodel: {preset: mlp}\n"
         "data: {train: {samples: 64, batch_size: 8}, val: {samples: 16, batch_size: 8}}\n"
         "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 2}\n" +
         program + more;
}

Rehearsal rehearsal_of(const std::string& text, bool explore) {
  return test::predicted(text, explore);
}

constexpr const char* logs = "program: {training_step: [log: {name: l, value: loss}]}\n";
constexpr const char* stops_by_loss =
    "program: {training_step: [{if: loss < 100, then: [should_stop: true]}]}\n";

TEST_CASE("a prediction computes no values and is the same beside them") {
  const Rehearsal run = rehearsal_of(training(logs), false);
  const Rehearsal verified = rehearsal_of(training(logs), true);
  CHECK_FALSE(run.run.preparation.options.numerics);
  CHECK(verified.run.preparation.options.numerics);
  REQUIRE(run.results.prediction.step_time.has_value());
  CHECK(run.results.prediction.step_time == verified.results.prediction.step_time);
  CHECK(run.results.prediction.total_time == verified.results.prediction.total_time);
  REQUIRE(run.results.ranks.size() == verified.results.ranks.size());
  for (size_t rank = 0; rank < run.results.ranks.size(); ++rank) {
    CHECK(run.results.ranks[rank].memory.peak == verified.results.ranks[rank].memory.peak);
  }
}

// Its times come from a run in which ranks that do the same run for others; their losses differ.
TEST_CASE("what each rank logged is its own, whoever runs for it in the prediction") {
  const auto metrics_of = [](const std::string& more) {
    const Rehearsal verified = rehearsal_of(
        "version: 1\ncluster: {preset: dgx-a100, nodes: 3}\n"
        "model: {layers: [{Linear: [16, 24]}, GELU, {Linear: [24, 3]}], input: [16]}\n"
        "data: {train: {samples: 1100, batch_size: 4}}\n"
        "trainer: {accelerator: gpu, devices: 4, num_nodes: 3, strategy: ddp, max_epochs: 2, "
        "limit_val_batches: 0}\n" +
            std::string(logs) + more,
        true);
    CHECK(verified.results.prediction.simulated_ranks == (more.empty() ? 4 : 12));
    Request request;
    request.command = "verify";
    return json_of(verified, request).at("metrics").at("l").at("by_rank");
  };
  const Json folded = metrics_of("");
  CHECK(folded == metrics_of("verify: {all_ranks: true}\n"));
  CHECK(folded.at("7") != folded.at("6"));
}

TEST_CASE("where values decide what a training does, they are computed to predict it") {
  const Rehearsal run = rehearsal_of(training(stops_by_loss), false);
  REQUIRE(run.ran());
  CHECK(run.run.preparation.values_decide);
  CHECK(run.run.preparation.options.numerics);
  CHECK(run.results.prediction.steps < 8);
}

TEST_CASE("values decide where a statement looks at them, also through names") {
  const auto decide = [](const std::string& program) {
    return rehearsal_of(training("program: {training_step: [" + program + "]}\n"), false)
        .run.preparation.values_decide;
  };
  CHECK_FALSE(decide("{log: {name: l, value: loss * 2}}"));
  CHECK_FALSE(decide("{let: {x: loss + 1}}, {log: {name: l, value: x}}"));
  CHECK_FALSE(decide("{if: batch_idx == 1, then: [barrier]}"));
  CHECK(decide("{let: {x: loss + 1}}, {if: x > 2, then: [barrier]}"));
  CHECK(decide("{all_reduce: {tensor: loss, as: y}}, {if: y > 2, then: [barrier]}"));
}

}  // namespace
}  // namespace lockstep::cli::prediction_without_values_test
