#include "rehearsal/accuracy/row_scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <regex>

#include "rehearsal/accuracy/row_layout.hpp"
#include "rehearsal/accuracy/row_machine.hpp"
#include "rehearsal/accuracy/row_model.hpp"
#include "rehearsal/accuracy/row_source.hpp"

namespace lockstep::cli {

namespace {

// Blocks that all ranks run in a step: what takes longer than a few seconds to simulate is left
// out. Each block of a layer that several ranks compute counts twice, for its exchanges.
constexpr int64_t work_max = 120'000;
constexpr int64_t blocks_of_images = 16;
// The second is steady. A pipeline is steady within the first, and long.
constexpr int64_t steps_predicted = 2;
constexpr int64_t steps_of_pipeline = 1;

/// The value of `trainer.precision`; empty: there is none.
std::string precision_of(const ThroughputRow& row) {
  const std::string text = lower_case(row.text("precision"));
  if (contains(text, "fp8") || contains(text, "fp4") || contains(text, "float8")) {
    // MLPerf's list names FP8 for H100 alone.
    const bool is_before_hopper =
        row.source == "mlperf_v30_bert" && contains(lower_case(row.text("gpu")), "a100");
    return is_before_hopper ? "16-mixed" : "";
  }
  if (contains(text, "bf16")) {
    return contains(text, "weights in bf16") ? "bf16-true" : "bf16-mixed";
  }
  if (contains(text, "fp16") || contains(text, "amp") || contains(text, "mixed")) {
    return "16-mixed";
  }
  return "32-true";
}

/// Samples of a micro-batch. `replicas` take samples of their own.
std::optional<int64_t> batch_of(const ThroughputRow& row, int64_t replicas) {
  if (const auto micro = row.whole("micro_batch")) {
    return micro;
  }
  if (row.whole("pp") > int64_t{1} && !row.whole("grad_accum")) {
    return std::nullopt;  // a pipeline's bubble depends on it
  }
  const int64_t accumulated = row.whole("grad_accum").value_or(1);
  if (const auto global = row.whole("global_batch")) {
    return std::max<int64_t>(1, *global / (replicas * accumulated));
  }
  static const std::regex per_gpu(R"((\d+) per GPU)");
  std::smatch match;
  const std::string& notes = row.text("notes");
  return std::regex_search(notes, match, per_gpu) ? std::optional(std::stol(match[1]))
                                                  : std::nullopt;
}

int64_t accumulation_of(const ThroughputRow& row, int64_t batch, int64_t replicas) {
  if (const auto stated = row.whole("grad_accum")) {
    return *stated;
  }
  const auto global = row.whole("global_batch");
  return global ? std::max<int64_t>(1, *global / (batch * replicas)) : 1;
}

/// Of all GPUs; nothing where the row has no throughput.
std::optional<double> measured_of(const ThroughputRow& row, const RowModel& model, int64_t gpus,
                                  double samples_of_step) {
  const auto seq_len = static_cast<double>(model.seq_len);
  if (const auto tokens = row.number("tokens_per_s")) {
    return *tokens / seq_len;
  }
  if (const auto tokens = row.number("tokens_per_s_per_gpu")) {
    return *tokens * static_cast<double>(gpus) / seq_len;
  }
  if (const auto samples = row.number("samples_per_s")) {
    return samples;
  }
  if (const auto step = row.number("step_s")) {
    return samples_of_step / *step;
  }
  // Megatron-LM's papers and README state FLOP/s by their formula (Narayanan et al. 2021).
  const bool counts_so = row.source.starts_with("megatron_") || row.source == "alpa";
  const auto teraflops = row.number("tflops_per_gpu");
  if (teraflops && counts_so && model.published_flops > 0) {
    return *teraflops * 1e12 * static_cast<double>(gpus) / model.published_flops;
  }
  return std::nullopt;
}

std::string optimizer_of(const RowModel& model) {
  return model.is_image ? "{SGD: {lr: 0.1, momentum: 0.9}}" : "{AdamW: {lr: 1e-4}}";
}

/// What a step is made of.
struct RowStep {
  int64_t replicas = 1;
  int64_t batch = 1;  ///< samples of a micro-batch
  int64_t accumulated = 1;
  int64_t samples() const { return batch * accumulated * replicas; }
};

constexpr const char* doubted = "the file doubts the figure, and its notes say why";
constexpr const char* too_large = "more work than is simulated in a few seconds";

int64_t work_of(const RowModel& model, const RowLayout& layout, const RowStep& step) {
  const int64_t blocks = model.is_image ? blocks_of_images : model.layers;
  return layout.gpus * step.accumulated * std::max<int64_t>(1, blocks / layout.pipeline) *
         (layout.tensor > 1 ? 2 : 1);
}

/// What the row says about variables of the environment.
std::string environment_of(const ThroughputRow& row) {
  std::string variables;
  if (contains(row.text("precision"), "TF32")) {
    variables = "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE: \"1\"";
  }
  if (contains(row.text("interconnect"), "NCCL_P2P_DISABLE=1")) {
    variables += fmt::format("{}NCCL_P2P_DISABLE: \"1\"", variables.empty() ? "" : ", ");
  }
  return variables.empty() ? "" : fmt::format("env: {{{}}}\n", variables);
}

/// `model` with images as channels_last, where the row has them so.
std::string in_its_format(const ThroughputRow& row, const std::string& model) {
  if (!contains(row.text("precision"), "nhwc")) {
    return model;
  }
  constexpr std::string_view in_one_line = "model: {";
  constexpr std::string_view in_lines = "model:\n";
  if (model.starts_with(in_one_line)) {
    return fmt::format("{}memory_format: channels_last, {}", in_one_line,
                       model.substr(in_one_line.size()));
  }
  return fmt::format("{}  memory_format: channels_last\n{}", in_lines,
                     model.substr(in_lines.size()));
}

std::string precision_with(const RowStrategy& strategy, const std::string& precision) {
  if (strategy.name.starts_with("fsdp2")) {
    return "32-true";  // its own policy says in which type layers compute
  }
  if (strategy.is_one_process || !strategy.lightning.empty()) {
    return precision.substr(0, precision.find('-'));
  }
  return strategy.holds_half && precision.ends_with("-mixed")
             ? precision.substr(0, precision.find('-')) + "-true"
             : precision;
}

std::string yaml_of(const ThroughputRow& row, const RowMachine& machine, const RowModel& model,
                    const RowStrategy& strategy, const RowStep& step) {
  const std::string precision = precision_with(strategy, precision_of(row));
  const int64_t batch = strategy.is_one_process ? step.batch * machine.gpus
                        : strategy.cuts_batch   ? step.batch * step.accumulated
                                                : step.batch;
  const int64_t steps = strategy.cuts_batch ? steps_of_pipeline : steps_predicted;
  const std::string versions =
      strategy.lightning.empty()
          ? ""
          : fmt::format("versions: {{lightning: \"{}\"}}\n", strategy.lightning);
  return fmt::format(
      "version: 1\n{}{}cluster: {{{}}}\n{}optimizer: {}\ntrainer: {{accelerator: gpu, devices: {}, "
      "num_nodes: {}, strategy: {}, precision: {}, accumulate_grad_batches: {}, max_steps: {}, "
      "num_sanity_val_steps: 0, limit_val_batches: 0}}\ndata: {{train: {{samples: {}, batch_size: "
      "{}}}}}\n",
      versions, environment_of(row), machine.yaml, in_its_format(row, model.yaml),
      strategy.optimizer.empty() ? optimizer_of(model) : strategy.optimizer,
      machine.gpus / machine.nodes, machine.nodes, strategy.yaml, precision,
      strategy.cuts_batch ? 1 : step.accumulated, steps, step.samples() * (steps + 1), batch);
}

}  // namespace

RowScenario scenario_of(const ThroughputRow& published) {
  const ThroughputRow row = with_scripts_of_source(published);
  const RowMachine machine = machine_of_row(row);
  const RowLayout layout = layout_of(row, machine.gpus);
  const RowModel model = model_of(row, layout.tensor);
  RowStep step{.replicas = std::max<int64_t>(1, layout.replicas())};
  const auto batch = batch_of(row, step.replicas);
  step.batch = batch.value_or(1);
  step.accumulated = batch ? accumulation_of(row, *batch, step.replicas) : 1;
  const RowStrategy strategy = strategy_of(row, layout, step.batch, step.accumulated);
  const std::string precision = precision_of(row);
  RowScenario result;
  result.group = {.source = row.source,
                  .software = software_of(row),
                  .gpu = machine.gpu,
                  .family = model.family,
                  .strategy = strategy.name,
                  .precision = precision,
                  .gpus = machine.gpus,
                  .nodes = machine.nodes};
  result.is_data_parallel = strategy.is_data_parallel;
  const auto measured = measured_of(row, model, machine.gpus, static_cast<double>(step.samples()));
  for (const std::string& reason :
       {machine.why_not, strategy.why_not, model.why_not,
        std::string(precision.empty() ? "FP8 and FP4 arithmetic are not modelled" : ""),
        std::string(measured ? "" : "the source states no throughput or step time"),
        std::string(batch ? "" : "the batch size is not stated"),
        std::string(work_of(model, layout, step) > work_max ? too_large : ""),
        std::string(contains(row.text("notes"), "doubted: ") ? doubted : "")}) {
    if (result.why_not.empty()) {
      result.why_not = reason;
    }
  }
  if (result.why_not.empty() && *measured <= 0) {
    result.why_not = "the source states no throughput or step time";
  }
  if (!result.why_not.empty()) {
    return result;
  }
  result.samples_per_s = *measured;
  result.yaml = yaml_of(row, machine, model, strategy, step);
  return result;
}

}  // namespace lockstep::cli
