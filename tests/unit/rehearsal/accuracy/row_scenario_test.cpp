#include "rehearsal/accuracy/row_scenario.hpp"

#include <catch2/catch.hpp>

#include <cmath>

#include "rehearsal/accuracy/accuracy_errors.hpp"

using namespace lockstep;
using namespace lockstep::cli;

namespace {

ThroughputRow row_with(std::initializer_list<std::pair<const char*, const char*>> cells) {
  ThroughputRow row;
  row.source = "figures";
  for (const auto& [column, cell] : cells) {
    row.set(column, cell);
  }
  return row;
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

PredictedRow predicted(const std::string& id, double measured, double predicted_rate) {
  PredictedRow row;
  row.id = id;
  row.measured = measured;
  row.predicted = predicted_rate;
  return row;
}

}  // namespace

TEST_CASE("accuracy: a published row becomes a scenario") {
  const RowScenario scenario = scenario_of(row_with({{"row_id", "a"},
                                                     {"gpu", "V100-16GB-SXM2"},
                                                     {"gpus", "16"},
                                                     {"nodes", "2"},
                                                     {"interconnect", "ONE 100 Gb/s NIC per node"},
                                                     {"framework", "PyTorch"},
                                                     {"strategy", "ddp"},
                                                     {"model", "ResNet-50 v1.5"},
                                                     {"micro_batch", "128"},
                                                     {"grad_accum", "4"},
                                                     {"precision", "AMP fp16"},
                                                     {"samples_per_s", "9000"}}));
  INFO(scenario.yaml);
  CHECK(scenario.why_not.empty());
  CHECK(scenario.is_data_parallel);
  CHECK(scenario.samples_per_s == 9000);
  CHECK(scenario.group.gpu == "v100-sxm2-16gb");
  CHECK(scenario.group.family == "ResNet");
  CHECK(says(scenario.yaml, "nics: 1, network: {bandwidth: 12500 MB/s}"));
  CHECK(says(scenario.yaml, "devices: 8, num_nodes: 2, strategy: ddp, precision: 16-mixed"));
  CHECK(says(scenario.yaml, "accumulate_grad_batches: 4"));
  CHECK(says(scenario.yaml, "batch_size: 128"));
}

TEST_CASE("accuracy: throughput of sequences from tokens, and from the time of a step") {
  const RowScenario tokens = scenario_of(row_with({{"gpu", "A100-80GB"},
                                                   {"gpus", "8"},
                                                   {"strategy", "ddp"},
                                                   {"model", "GPT 1B"},
                                                   {"layers", "24"},
                                                   {"hidden", "2048"},
                                                   {"heads", "16"},
                                                   {"seq_len", "1024"},
                                                   {"micro_batch", "4"},
                                                   {"precision", "bf16"},
                                                   {"tokens_per_s_per_gpu", "2048"}}));
  CHECK(tokens.samples_per_s == 16);  // 2048 tokens x 8 GPUs / 1024 tokens of a sequence
  const RowScenario step = scenario_of(row_with({{"gpu", "A100-80GB"},
                                                 {"gpus", "8"},
                                                 {"strategy", "ddp"},
                                                 {"model", "resnet50"},
                                                 {"global_batch", "1024"},
                                                 {"step_s", "0.5"}}));
  CHECK(step.samples_per_s == 2048);
  CHECK(says(step.yaml, "batch_size: 128"));
}

TEST_CASE("accuracy: rows that the format cannot express say why") {
  const auto reason = [](const char* column, const char* cell) {
    ThroughputRow row = row_with({{"gpu", "A100-80GB"},
                                  {"gpus", "8"},
                                  {"strategy", "ddp"},
                                  {"model", "resnet50"},
                                  {"micro_batch", "64"},
                                  {"samples_per_s", "1"}});
    row.set(column, cell);
    return scenario_of(row).why_not;
  };
  CHECK(reason("notes", "") == "");
  CHECK(says(reason("tp", "2"), "tensor"));
  CHECK(says(reason("model", "gnmt"), "LSTM"));
  CHECK(says(reason("gpu", "Habana Gaudi2"), "not a preset"));
  CHECK(says(reason("micro_batch", ""), "batch size"));
  CHECK(says(reason("samples_per_s", ""), "throughput"));
  CHECK(says(reason("precision", "FP8"), "FP8"));
}

TEST_CASE("accuracy: errors of predictions") {
  // Throughputs 10 % too high, 20 % too low and 50 % too high.
  const PredictedRow rows[] = {predicted("a", 100, 110), predicted("b", 100, 80),
                               predicted("c", 10, 15)};
  const ErrorSummary summary = summarize("all", {&rows[0], &rows[1], &rows[2]});
  CHECK(summary.rows == 3);
  CHECK(summary.mean == Approx(0.8 / 3));
  CHECK(summary.median == Approx(0.2));
  CHECK(summary.ninetieth == Approx(0.5));
  CHECK(summary.worst == Approx(0.5));
  CHECK(summary.worst_row == "c");
  CHECK(summary.ratio == Approx(std::cbrt(1.1 * 0.8 * 1.5)));
  PredictedRow none;
  CHECK(summarize("all", {&none}).rows == 0);
}
