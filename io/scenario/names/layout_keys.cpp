#include "io/scenario/names/layout_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

namespace lockstep {
namespace {

/// One size of a layout under all its names, and what to do where a strategy has none of them.
struct LayoutSize {
  std::span<const std::string_view> names;
  std::string_view without;  ///< empty: the nearest spelling is said
};

constexpr auto tensor_names = std::to_array<std::string_view>(
    {"tensor_model_parallel_size", "tensor_parallel_size", "tensor_parallel_degree",
     "tensor_parallel", "model_parallel_size", "tp_size", "tp"});
constexpr auto pipeline_names = std::to_array<std::string_view>(
    {"pipeline_model_parallel_size", "pipeline_parallel_size", "pipeline_parallel_degree",
     "pipeline_parallel", "pp_size", "pp"});
constexpr auto context_names = std::to_array<std::string_view>(
    {"context_parallel_size", "context_parallel_degree", "context_model_parallel_size",
     "context_parallel", "cp_size", "cp"});
constexpr auto expert_names =
    std::to_array<std::string_view>({"expert_model_parallel_size", "expert_parallel_degree",
                                     "expert_parallel_size", "expert_parallel", "ep_size", "ep"});
constexpr auto data_names = std::to_array<std::string_view>(
    {"data_parallel_size", "data_parallel_shard_degree", "data_parallel", "dp_size", "dp"});
constexpr auto virtual_names = std::to_array<std::string_view>(
    {"virtual_pipeline_model_parallel_size", "virtual_pipeline_parallel_size", "vpp"});
constexpr auto stage_names =
    std::to_array<std::string_view>({"stages", "num_stages", "n_stages", "pipeline_stages"});
constexpr auto micro_batch_names = std::to_array<std::string_view>(
    {"n_microbatches", "num_microbatches", "num_micro_batches", "micro_batches", "chunks"});

constexpr auto layout_sizes = std::to_array<LayoutSize>({
    {tensor_names, "use ModelParallelStrategy, PipelineStrategy or MegatronStrategy"},
    {pipeline_names,
     "use PipelineStrategy or MegatronStrategy, which have tensor parallelism, too"},
    {context_names, "use MegatronStrategy with context_parallel_size"},
    {expert_names, "use MegatronStrategy with expert_model_parallel_size"},
    {data_names, "leave it out: it follows from the number of ranks and the other sizes"},
    {virtual_names, "use MegatronStrategy, or PipelineStrategy with stages"},
    {stage_names, ""},
    {micro_batch_names, "use PipelineStrategy"},
});

/// Where a strategy says the same in another way.
struct OwnWay {
  std::string_view strategy;
  std::string_view key;
  std::string_view remedy;
};

constexpr std::string_view norms_by_positions =
    "write SequenceParallel() for norms in parallelize_plan, or parallelize_plan: auto";
constexpr std::string_view from_batches =
    "write global_batch_size: it is micro_batch_size x replicas x the number of micro-batches";
constexpr std::string_view from_virtual =
    "write virtual_pipeline_model_parallel_size, the stages of a rank";
constexpr std::string_view from_devices = "write devices of the Trainer, and where to cut as split";

constexpr auto own_ways = std::to_array<OwnWay>({
    {"ModelParallelStrategy", "sequence_parallel", norms_by_positions},
    {"ModelParallelStrategy", "device_mesh", "write data_parallel_size and tensor_parallel_size"},
    {"PipelineStrategy", "sequence_parallel", norms_by_positions},
    {"PipelineStrategy", "virtual_pipeline_model_parallel_size",
     "write stages, those of all ranks of a pipeline together, and schedule: Interleaved1F1B"},
    {"MegatronStrategy", "n_microbatches", from_batches},
    {"MegatronStrategy", "num_microbatches", from_batches},
    {"MegatronStrategy", "stages", from_virtual},
    {"MegatronStrategy", "num_stages", from_virtual},
    {"NaiveModelParallelStrategy", "devices", from_devices},
    {"NaiveModelParallelStrategy", "stages", from_devices},
    {"NaiveModelParallelStrategy", "num_stages", from_devices},
});

constexpr auto megatron_ddp_keys = std::to_array<std::string_view>(
    {"use_distributed_optimizer", "overlap_grad_reduce", "overlap_param_gather",
     "grad_reduce_in_fp32", "average_in_collective", "bucket_size", "check_for_nan_in_grad"});

bool holds(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

std::string layout_key_remedy(std::string_view strategy, std::string_view key,
                              const std::vector<std::string_view>& legal) {
  const auto* const own = std::ranges::find_if(
      own_ways, [&](const OwnWay& way) { return way.strategy == strategy && way.key == key; });
  if (own != own_ways.end()) {
    return std::string(own->remedy);
  }
  if (holds(legal, "ddp") && holds(megatron_ddp_keys, key)) {
    return fmt::format("it belongs into `ddp`: {{ddp: {{{}: ..}}}}", key);
  }
  const auto* const size = std::ranges::find_if(
      layout_sizes, [&](const LayoutSize& each) { return holds(each.names, key); });
  if (size == layout_sizes.end()) {
    return {};
  }
  const auto same =
      std::ranges::find_if(legal, [&](std::string_view each) { return holds(size->names, each); });
  return same == legal.end() ? std::string(size->without)
                             : fmt::format("did you mean `{}`?", *same);
}

}  // namespace lockstep
