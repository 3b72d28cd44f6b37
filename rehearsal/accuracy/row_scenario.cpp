#include "rehearsal/accuracy/row_scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <regex>

#include "rehearsal/accuracy/row_machine.hpp"
#include "rehearsal/accuracy/row_model.hpp"

namespace lockstep::cli {

namespace {

constexpr const char* tf32_line = "env: {TORCH_ALLOW_TF32_CUBLAS_OVERRIDE: \"1\"}\n";
// Larger worlds take most of the time and say little more.
constexpr int64_t gpus_max = 256;
constexpr int64_t steps_predicted = 2;  // the second is steady

/// The value of `trainer.strategy`, or why there is none.
struct RowStrategy {
  std::string yaml{};
  std::string name{};
  std::string why_not{};
  bool is_data_parallel = false;
  bool is_one_process = false;  ///< drives all GPUs, with a batch for all of them
};

RowStrategy strategy_of(const ThroughputRow& row, int64_t gpus) {
  const std::string text = lower_case(row.text("strategy"));
  const auto above_one = [&row](std::string_view column) { return row.whole(column) > int64_t{1}; };
  RowStrategy strategy{.name = text};
  if (above_one("tp") || above_one("pp") || above_one("cp") || above_one("ep")) {
    strategy.why_not = "tensor, context or expert parallelism, or a pipeline";
    return strategy;
  }
  static const std::regex replicated(R"(ddp|^dp)");
  const bool is_one = gpus == 1;
  const bool is_zero =
      contains(text, "zero1") || contains(text, "zero2") || contains(text, "zero3");
  if (contains(text, "fsdp2") || contains(text, "hsdp")) {
    strategy.why_not = "FSDP2 and HSDP rows are not translated";
  } else if (contains(text, "fsdp")) {
    const bool shards_all = !contains(text, "shard_grad_op");
    strategy.yaml =
        fmt::format("{{FSDPStrategy: {{sharding_strategy: {}, auto_wrap_policy: blocks}}}}",
                    shards_all ? "FULL_SHARD" : "SHARD_GRAD_OP");
    strategy.name = "fsdp";
  } else if (is_zero) {
    const char stage = text[text.find("zero") + 4];
    strategy.yaml = fmt::format("deepspeed_stage_{}", stage);
    strategy.name = strategy.yaml;
  } else if (contains(text, "dataparallel")) {
    strategy = {.yaml = "dp", .name = "dp", .is_data_parallel = true, .is_one_process = true};
  } else if (contains(text, "decentralized") || contains(text, "qadam") ||
             contains(text, "bytegrad") || contains(text, "asynchronous")) {
    strategy.why_not = "algorithms of Bagua are not translated";
    strategy.is_data_parallel = true;
  } else if (is_one) {
    strategy = {.yaml = "auto", .name = "single_device", .is_data_parallel = true};
  } else if (text.empty() || std::regex_search(text, replicated)) {
    strategy = {.yaml = "ddp", .name = "ddp", .is_data_parallel = true};
    if (contains(text, "bucket_cap_mb=")) {
      strategy.yaml = fmt::format("{{DDPStrategy: {{bucket_cap_mb: {}}}}}",
                                  std::stol(text.substr(text.find('=') + 1)));
    }
  } else {
    strategy.why_not = "the strategy is not one that is translated";
  }
  return strategy;
}

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
    return "bf16-mixed";
  }
  if (contains(text, "fp16") || contains(text, "amp") || contains(text, "mixed")) {
    return "16-mixed";
  }
  return "32-true";
}

std::optional<int64_t> batch_of(const ThroughputRow& row, int64_t gpus) {
  if (const auto micro = row.whole("micro_batch")) {
    return micro;
  }
  const int64_t accumulated = row.whole("grad_accum").value_or(1);
  if (const auto global = row.whole("global_batch")) {
    return std::max<int64_t>(1, *global / (gpus * accumulated));
  }
  static const std::regex per_gpu(R"((\d+) per GPU)");
  std::smatch match;
  const std::string& notes = row.text("notes");
  return std::regex_search(notes, match, per_gpu) ? std::optional(std::stol(match[1]))
                                                  : std::nullopt;
}

std::optional<int64_t> accumulation_of(const ThroughputRow& row, int64_t batch, int64_t gpus) {
  if (const auto stated = row.whole("grad_accum")) {
    return stated;
  }
  const auto global = row.whole("global_batch");
  return global ? std::max<int64_t>(1, *global / (batch * gpus)) : 1;
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
  return std::nullopt;
}

std::string optimizer_of(const RowModel& model) {
  return model.is_image ? "{SGD: {lr: 0.1, momentum: 0.9}}" : "{AdamW: {lr: 1e-4}}";
}

}  // namespace

RowScenario scenario_of(const ThroughputRow& row) {
  const RowModel model = model_of(row);
  const RowMachine machine = machine_of_row(row);
  const RowStrategy strategy = strategy_of(row, machine.gpus);
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
  const auto batch = batch_of(row, machine.gpus);
  const int64_t accumulated = batch ? accumulation_of(row, *batch, machine.gpus).value_or(1) : 1;
  const double samples = static_cast<double>(batch.value_or(1) * accumulated * machine.gpus);
  const auto measured = measured_of(row, model, machine.gpus, samples);
  for (const std::string& reason :
       {strategy.why_not, machine.why_not, model.why_not,
        std::string(precision.empty() ? "FP8 and FP4 arithmetic are not modelled" : ""),
        std::string(machine.gpus > gpus_max ? "more than 256 GPUs" : ""),
        std::string(measured ? "" : "the source states no throughput or step time"),
        std::string(batch ? "" : "the batch size is not stated")}) {
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
  const bool is_dp = strategy.is_one_process;
  result.yaml = fmt::format(
      "version: 1\n{}cluster: {{{}}}\n{}optimizer: {}\ntrainer: {{accelerator: gpu, devices: {}, "
      "num_nodes: {}, strategy: {}, precision: {}, accumulate_grad_batches: {}, max_steps: {}, "
      "num_sanity_val_steps: 0, limit_val_batches: 0}}\ndata: {{train: {{samples: {}, batch_size: "
      "{}}}}}\n",
      contains(row.text("precision"), "TF32") ? tf32_line : "", machine.yaml, model.yaml,
      optimizer_of(model), machine.gpus / machine.nodes, machine.nodes, strategy.yaml,
      is_dp ? precision.substr(0, 2) : precision, accumulated, steps_predicted,
      *batch * machine.gpus * accumulated * (steps_predicted + 1),
      is_dp ? *batch * machine.gpus : *batch);
  return result;
}

}  // namespace lockstep::cli
