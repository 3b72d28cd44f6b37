#include "rehearsal/accuracy/row_scenario.hpp"

#include <catch2/catch.hpp>

#include <cmath>

#include "model/network/build.hpp"
#include "rehearsal/accuracy/accuracy_errors.hpp"
#include "rehearsal/accuracy/predict_rows.hpp"

using namespace lockstep;
using namespace lockstep::cli;

namespace row_scenario_test {

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

TEST_CASE("accuracy: images lie as the row says, and as the scripts of its source have them") {
  const auto yaml_of = [](const char* source, const char* precision) {
    ThroughputRow row = row_with({{"gpu", "RTX 3090"},
                                  {"gpus", "1"},
                                  {"framework", "PyTorch"},
                                  {"model", "resnet50"},
                                  {"micro_batch", "512"},
                                  {"precision", precision},
                                  {"samples_per_s", "1218"}});
    row.source = source;
    return scenario_of(row).yaml;
  };
  CHECK(
      says(yaml_of("timm", "AMP nhwc"), "model: {memory_format: channels_last, preset: resnet50"));
  CHECK(!says(yaml_of("timm", "AMP nchw"), "memory_format"));
  CHECK(says(yaml_of("dle_pt_resnet50", "AMP fp16"), "memory_format: channels_last"));
  CHECK(!says(yaml_of("dle_pt_resnet50", "TF32"), "memory_format"));
}

TEST_CASE("accuracy: processes that train alone are one training each") {
  ThroughputRow row = row_with({{"gpu", "V100 16GB"},
                                {"gpus", "8"},
                                {"dp", "8"},
                                {"framework", "PyTorch"},
                                {"strategy", "ddp"},
                                {"model", "transformerxlbase"},
                                {"seq_len", "192"},
                                {"vocab", "267735"},
                                {"global_batch", "64"},
                                {"precision", "FP32/TF32"},
                                {"tokens_per_s", "54671"}});
  CHECK(scenario_of(row).group.gpus == 8);
  row.source = "lambda_gpu_bench";
  const RowScenario one = scenario_of(row);
  CHECK(one.group.gpus == 1);
  CHECK(one.group.strategy == "single_device");
  CHECK(says(one.yaml, "batch_size: 8}"));
  CHECK(one.samples_per_s == Approx(54671.0 / 8 / 192));
  CHECK(says(one.yaml, "NCCL_P2P_DISABLE"));
}

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
  CHECK(says(reason("cp", "2"), "context"));
  CHECK(says(reason("ep", "2"), "expert"));
  CHECK(says(reason("strategy", "ptd-p"), "how the model is divided"));
  CHECK(says(reason("model", "gnmt"), "LSTM"));
  CHECK(says(reason("gpu", "Habana Gaudi2"), "not a preset"));
  CHECK(says(reason("micro_batch", ""), "batch size"));
  CHECK(says(reason("samples_per_s", ""), "throughput"));
  CHECK(says(reason("precision", "FP8"), "FP8"));
  CHECK(says(reason("notes", "digitised; doubted: above the peak"), "doubts the figure"));
  CHECK(reason("notes", "nobody doubted it") == "");
}

TEST_CASE("accuracy: what a row says of software and environment is in its scenario") {
  const auto of_framework = [](const char* framework, const char* precision) {
    return scenario_of(row_with({{"gpu", "A100-80GB"},
                                 {"gpus", "2"},
                                 {"interconnect", "NVLink disabled (NCCL_P2P_DISABLE=1)"},
                                 {"framework", framework},
                                 {"strategy", "ddp"},
                                 {"model", "GPT2-large"},
                                 {"seq_len", "1024"},
                                 {"micro_batch", "4"},
                                 {"precision", precision},
                                 {"samples_per_s", "10"}}));
  };
  const RowScenario plain = of_framework("PyTorch", "TF32");
  CHECK(
      says(plain.yaml, "env: {TORCH_ALLOW_TF32_CUBLAS_OVERRIDE: \"1\", NCCL_P2P_DISABLE: \"1\"}"));
  CHECK(says(plain.yaml, "attention: math"));
  CHECK(says(of_framework("PyTorch", "FP32").yaml, "env: {NCCL_P2P_DISABLE: \"1\"}"));
  // USE_CUDNN=1 of its scripts; cuDNN's kernel takes 16 bits alone.
  CHECK(says(of_framework("llm.c (C/CUDA)", "bf16").yaml, "attention: flash"));
  CHECK(says(of_framework("llm.c fp32/TF32", "TF32").yaml, "attention: math"));
  const RowScenario half = of_framework("HF Trainer (whyNLP/tinyllama)", "bf16, weights in bf16");
  CHECK(half.group.software == "fused");
  CHECK(says(half.yaml, "precision: bf16-true"));
  CHECK(says(half.yaml, "attention: flash"));
  CHECK(of_framework("llm-foundry/Composer FSDP", "bf16").group.software == "fused");
}

TEST_CASE("accuracy: tensor and pipeline ranks become Megatron-LM's, or a pipeline of that shape") {
  ThroughputRow row = row_with({{"gpu", "A100-80GB"},
                                {"gpus", "16"},
                                {"nodes", "2"},
                                {"framework", "Megatron-LM"},
                                {"strategy", "tp+pp+dp"},
                                {"tp", "4"},
                                {"pp", "2"},
                                {"vpp", "2"},
                                {"model", "GPT 1B"},
                                {"layers", "24"},
                                {"hidden", "2048"},
                                {"heads", "16"},
                                {"seq_len", "1024"},
                                {"vocab", "50257"},
                                {"micro_batch", "2"},
                                {"global_batch", "64"},
                                {"precision", "fp16"},
                                {"activation_checkpointing", "full"},
                                {"step_s", "2"}});
  const RowScenario scenario = scenario_of(row);
  INFO(scenario.yaml);
  // 16 GPUs are 2 replicas of 4 x 2; 64 samples are 32 for each, 16 micro-batches of 2.
  CHECK(says(scenario.yaml,
             "{MegatronStrategy: {tensor_model_parallel_size: 4, pipeline_model_parallel_size: 2, "
             "context_parallel_size: 1, micro_batch_size: 2, global_batch_size: 64, "
             "virtual_pipeline_model_parallel_size: 2}}"));
  CHECK(says(scenario.yaml, "batch_size: 32"));
  CHECK(says(scenario.yaml, "precision: 16-mixed"));
  CHECK(says(scenario.yaml, "activation_checkpointing: full"));
  CHECK(says(scenario.yaml, "[50688, 2048]"));  // 99 times 128 x 4: padded as Megatron-LM does
  CHECK(scenario.samples_per_s == 32);
  CHECK(scenario.group.strategy == "pp x tp x dp");
  row.set("activation_checkpointing", "selective + sequence parallel");
  CHECK(says(scenario_of(row).yaml, "sequence_parallel: true"));
  row.set("cp", "2");  // one replica of 4 x 2 x 2
  CHECK(says(scenario_of(row).yaml, "context_parallel_size: 2, micro_batch_size: 2"));
  CHECK(scenario_of(row).group.strategy == "pp x tp x cp");
  row.set("cp", "");
  row.set("framework", "LiBai/OneFlow");
  CHECK(says(scenario_of(row).yaml,
             "schedule: Interleaved1F1B, n_microbatches: 16, "
             "pipeline_parallel_size: 2, stages: 4, tensor_parallel_size: 4"));
  CHECK(says(scenario_of(row).yaml, "precision: 16-true"));
  row.set("vpp", "");
  row.set("global_batch", "4");  // one micro-batch, which 1F1B of two stages refuses
  CHECK(says(scenario_of(row).yaml, "schedule: GPipe, n_microbatches: 1,"));
  row.set("micro_batch", "");
  CHECK(says(scenario_of(row).why_not, "batch size"));
}

TEST_CASE("accuracy: what sources call FLOP/s is counted as they count it") {
  // Row 001 of megatron_2020_dgx.csv: 8 samples in 1.121 s are 71.9 TFLOP/s.
  ThroughputRow row = row_with({{"gpu", "V100-32GB"},
                                {"gpus", "1"},
                                {"framework", "Megatron-LM"},
                                {"model", "GPT2-1B"},
                                {"layers", "24"},
                                {"hidden", "1920"},
                                {"heads", "15"},
                                {"seq_len", "1024"},
                                {"vocab", "51200"},
                                {"micro_batch", "8"},
                                {"precision", "fp16"},
                                {"activation_checkpointing", "full"},
                                {"tflops_per_gpu", "71.9"}});
  CHECK(says(scenario_of(row).why_not, "throughput"));  // another source may count otherwise
  row.source = "megatron_2020_dgx";
  CHECK(scenario_of(row).samples_per_s == Approx(8 / 1.121).epsilon(0.001));
}

TEST_CASE("accuracy: the stand-in for attention with a memory has its FLOPs") {
  const ThroughputRow row = row_with({{"gpu", "V100-16GB"},
                                      {"model", "Transformer-XL base"},
                                      {"micro_batch", "32"},
                                      {"tokens_per_s", "1"}});
  CHECK(says(scenario_of(row).yaml,
             "{embed_dim: 512, num_heads: 32, num_kv_heads: 1, head_dim: "
             "48}"));
  LayerDescription attention{.kind = "GroupedQueryAttention"};
  attention.arguments = {{"embed_dim", int64_t{512}},
                         {"num_heads", int64_t{32}},
                         {"num_kv_heads", int64_t{1}},
                         {"head_dim", int64_t{48}}};
  NetworkDescription description;
  description.input = Shape{192, 512};
  description.layers = {attention};
  description.loss = {.kind = "MSELoss"};
  const BuildResult built = build_network(description);
  REQUIRE(built.ok());
  const double flops =
      static_cast<double>(built.network.layers.front().work_of(Pass::forward).flops.count());
  // Queries and output of 192 positions, keys and values of 384; two products for scores and one
  // for the sum of 192 x 384 pairs of positions.
  const double projections = 2.0 * 512 * 512 * (192 + 192 + 2 * 384);
  const double scores = 3 * 2.0 * 192 * 384 * 512;
  CHECK(flops == Approx(projections + scores).epsilon(0.03));
}

TEST_CASE("accuracy: layers that several ranks compute are priced as they are cut") {
  // A forward and a backward of a large block by two ranks take more than half of the time that one
  // takes, and less than all of it.
  ThroughputRow row = row_with({{"gpu", "A100-80GB"},
                                {"gpus", "1"},
                                {"framework", "Megatron-LM"},
                                {"model", "GPT"},
                                {"layers", "2"},
                                {"hidden", "4096"},
                                {"heads", "32"},
                                {"seq_len", "1024"},
                                {"micro_batch", "4"},
                                {"precision", "fp16"},
                                {"step_s", "1"}});
  const Deadline none(std::nullopt);
  const auto rate = [&] {
    const RowRun run = run_of_row(scenario_of(row).yaml, {"versions.kernels=megatron"}, none);
    INFO(run.why_not);
    REQUIRE(run.samples_per_s);
    return *run.samples_per_s;
  };
  const double alone = rate();
  row.set("gpus", "2");
  row.set("tp", "2");
  const double together = rate();
  CHECK(together > 1.2 * alone);
  CHECK(together < 2.2 * alone);  // parameters are stored in 16 bits there, and not cast
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

}  // namespace row_scenario_test
