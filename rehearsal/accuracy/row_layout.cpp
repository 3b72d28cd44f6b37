#include "rehearsal/accuracy/row_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "rehearsal/accuracy/row_model.hpp"

namespace lockstep::cli {

namespace {

int64_t stated(const ThroughputRow& row, std::string_view column) {
  return std::max<int64_t>(1, row.whole(column).value_or(1));
}

/// Algorithms by what rows call them.
struct NamedAlgorithm {
  std::string_view part;
  std::string_view algorithm;
};
constexpr NamedAlgorithm bagua_algorithms[] = {
    {"low-precision decentralized", "low_precision_decentralized"},
    {"decentralized", "decentralized"},
    {"qadam", "qadam"},
    {"bytegrad", "bytegrad"},
    {"asynchronous", "async"}};

RowStrategy sharded(const std::string& text) {
  const std::string_view how = contains(text, "hsdp")            ? "HYBRID_SHARD"
                               : contains(text, "shard_grad_op") ? "SHARD_GRAD_OP"
                                                                 : "FULL_SHARD";
  return {.yaml = fmt::format(
              "{{FSDPStrategy: {{sharding_strategy: {}, auto_wrap_policy: blocks}}}}", how),
          .name = "fsdp"};
}

/// FSDP2 over the replicas of a layer, bf16 in collectives and layers, sums of gradients in fp32:
/// torchtitan's defaults (torchtitan/config_manager.py: mixed_precision_param, _reduce).
RowStrategy sharded_modules(const RowLayout& layout) {
  return {
      .yaml = fmt::format(
          "{{ModelParallelStrategy: {{data_parallel_size: {}, tensor_parallel_size: {}, "
          "fully_shard: {{modules: blocks, mp_policy: {{param_dtype: bf16, reduce_dtype: "
          "fp32}}}}{}}}}}",
          layout.replicas(), layout.tensor, layout.tensor > 1 ? ", parallelize_plan: auto" : ""),
      .name = layout.tensor > 1 ? "fsdp2 x tp" : "fsdp2"};
}

/// Fewer micro-batches than stages, which torch refuses to 1F1B: its first ranks then run all
/// forwards before the first backward, as GPipe.
std::string schedule_of(const std::string& text, const RowLayout& layout, int64_t micro_batches) {
  if (contains(text, "gpipe") || (micro_batches < layout.pipeline && layout.chunks == 1)) {
    return "GPipe";
  }
  return layout.chunks > 1 ? "Interleaved1F1B" : "1F1B";
}

std::string name_of(const RowLayout& layout) {
  std::string name;
  const auto add = [&name](std::string_view part, int64_t ranks) {
    if (ranks > 1) {
      name += (name.empty() ? "" : " x ") + std::string(part);
    }
  };
  add("pp", layout.pipeline);
  add("tp", layout.tensor);
  add("cp", layout.context);
  add("dp", layout.replicas());
  return name;
}

/// Megatron-LM itself, and what is built on it: Megatron-Core, NeMo, Megatron-Bridge, MegaScale.
bool is_megatron(const ThroughputRow& row) {
  const std::string framework = lower_case(row.text("framework"));
  const std::string text = lower_case(row.text("strategy"));
  const bool is_of_others = contains(text, "gpipe") || contains(framework, "deepspeed") ||
                            contains(framework, "zero bubble");  // cuts layers unevenly
  return !is_of_others &&
         (framework.starts_with("megatron") || framework.starts_with("nemo") ||
          framework.starts_with("nvidia nemo") || framework.starts_with("megascale"));
}

/// Megatron's own order of a pipeline, which also takes fewer micro-batches than stages.
void divide_as_megatron(const ThroughputRow& row, const RowLayout& layout, int64_t batch,
                        int64_t micro_batches, RowStrategy& strategy) {
  strategy.yaml = fmt::format(
      "{{MegatronStrategy: {{tensor_model_parallel_size: {}, pipeline_model_parallel_size: {}, "
      "context_parallel_size: {}, micro_batch_size: {}, global_batch_size: {}",
      layout.tensor, layout.pipeline, layout.context, batch,
      batch * micro_batches * layout.replicas());
  if (layout.chunks > 1) {
    strategy.yaml += fmt::format(", virtual_pipeline_model_parallel_size: {}", layout.chunks);
  }
  if (contains(lower_case(row.text("strategy") + row.text("activation_checkpointing")),
               "sequence parallel")) {
    strategy.yaml += ", sequence_parallel: true";
  }
  strategy.yaml += "}}";
}

RowStrategy divided(const ThroughputRow& row, const RowLayout& layout, int64_t batch,
                    int64_t micro_batches) {
  const std::string text = lower_case(row.text("strategy"));
  RowStrategy strategy{.name = name_of(layout)};
  if (contains(text, "zb-")) {
    strategy.why_not = "zero-bubble schedules of one stage for each rank";
    return strategy;
  }
  if (contains(text, "1f1b-i") && layout.chunks == 1) {
    strategy.why_not = "stages of an interleaved pipeline are not stated as a number";
    return strategy;
  }
  if (layout.gpus % (layout.tensor * layout.pipeline) != 0) {
    strategy.why_not = "tensor and pipeline ranks do not divide the GPUs";
    return strategy;
  }
  strategy.cuts_batch = true;
  if (is_megatron(row)) {
    divide_as_megatron(row, layout, batch, micro_batches, strategy);
    return strategy;
  }
  strategy.yaml = fmt::format(
      "{{PipelineStrategy: {{schedule: {}, n_microbatches: {}, pipeline_parallel_size: {}",
      schedule_of(text, layout, micro_batches), micro_batches, layout.pipeline);
  if (layout.chunks > 1) {
    strategy.yaml += fmt::format(", stages: {}", layout.pipeline * layout.chunks);
  }
  if (layout.tensor > 1) {
    strategy.yaml +=
        fmt::format(", tensor_parallel_size: {}, parallelize_plan: auto", layout.tensor);
  }
  strategy.yaml += "}}";
  strategy.holds_half = true;  // nanotron's models
  return strategy;
}

RowStrategy of_bagua(std::string_view algorithm) {
  RowStrategy strategy{.yaml = fmt::format("{{BaguaStrategy: {{algorithm: {}}}}}", algorithm),
                       .name = fmt::format("bagua {}", algorithm),
                       .is_data_parallel = true,
                       .lightning = "1.9"};
  if (algorithm == "qadam") {  // the step that is judged is the first behind the warm-up
    strategy.optimizer = "{QAdamOptimizer: {lr: 1e-3, warmup_steps: 1}}";
  }
  return strategy;
}

RowStrategy replicated(const std::string& text, const RowLayout& layout) {
  if (contains(text, "dataparallel")) {
    return {.yaml = "dp", .name = "dp", .is_data_parallel = true, .is_one_process = true};
  }
  for (const NamedAlgorithm& each : bagua_algorithms) {
    if (contains(text, each.part)) {
      return of_bagua(each.algorithm);
    }
  }
  if (layout.gpus == 1) {
    return {.yaml = "auto", .name = "single_device", .is_data_parallel = true};
  }
  RowStrategy strategy{.yaml = "ddp", .name = "ddp", .is_data_parallel = true};
  if (contains(text, "bucket_cap_mb=")) {
    strategy.yaml = fmt::format("{{DDPStrategy: {{bucket_cap_mb: {}}}}}",
                                std::stol(text.substr(text.find('=') + 1)));
  }
  return strategy;
}

}  // namespace

RowLayout layout_of(const ThroughputRow& row, int64_t gpus) {
  return {.gpus = gpus,
          .tensor = stated(row, "tp"),
          .pipeline = stated(row, "pp"),
          .chunks = stated(row, "vpp"),
          .context = stated(row, "cp"),
          .experts = stated(row, "ep")};
}

RowStrategy strategy_of(const ThroughputRow& row, const RowLayout& layout, int64_t batch,
                        int64_t micro_batches) {
  const std::string text = lower_case(row.text("strategy"));
  RowStrategy strategy{.name = text};
  if ((layout.context > 1 && !is_megatron(row)) || layout.experts > 1) {
    strategy.why_not = layout.experts > 1 ? "expert parallelism" : "context parallelism";
    return strategy;
  }
  if (contains(text, "fsdp2") || contains(text, "fsdp+tp")) {
    return sharded_modules(layout);
  }
  if (contains(text, "zero2 (p_os+g) + tp") || contains(text, "fsdp+")) {
    strategy.why_not = "sharding beside a pipeline, or of ZeRO beside tensor parallelism";
    return strategy;
  }
  if (layout.divides_model()) {
    return divided(row, layout, batch, micro_batches);
  }
  if (contains(text, "fsdp") || contains(text, "hsdp")) {
    return sharded(text);
  }
  static const std::regex zero(R"(zero([0-3]))");
  std::smatch match;
  if (std::regex_search(text, match, zero) && match[1] != "0") {
    strategy.yaml = fmt::format("deepspeed_stage_{}", match[1].str());
    strategy.name = strategy.yaml;
    return strategy;
  }
  // "apex-style simple DDP", "zero0": nothing is sharded. "tp+pp+dp" with sizes of 1: neither.
  static const std::regex whole(R"(ddp|^dp|zero0|^tp\+pp\+dp$|single|no ddp)");
  if (layout.gpus == 1 || text.empty() || std::regex_search(text, whole)) {
    return replicated(text, layout);
  }
  strategy.why_not = "how the model is divided over the GPUs is not stated";
  return strategy;
}

}  // namespace lockstep::cli
