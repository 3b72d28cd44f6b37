#include "model/strategy/megatron/megatron_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "model/core/nearest_sizes.hpp"
#include "model/network/mixture.hpp"
#include "model/network/optimizer/optimizer_rule.hpp"
#include "model/network/tensor_parallel/context_cut.hpp"
#include "model/strategy/megatron/megatron_keys.hpp"
#include "model/strategy/megatron/megatron_steps.hpp"
#include "model/strategy/sharded/fsdp/wrap_arguments.hpp"

namespace lockstep {

namespace {

using enum ArgumentUse;
using namespace megatron_keys;

// megatron/core/distributed/distributed_data_parallel_config.py
constexpr std::string_view known_ddp_names[] = {
    "ddp.grad_reduce_in_fp32",       "ddp.overlap_grad_reduce",   "ddp.overlap_param_gather",
    "ddp.use_distributed_optimizer", "ddp.check_for_nan_in_grad", "ddp.bucket_size",
    "ddp.average_in_collective",
};
constexpr std::string_view unmodelled_ddp_names[] = {
    "ddp.align_param_gather",
    "ddp.num_distributed_optimizer_instances",
    "ddp.check_for_large_grads",
    "ddp.pad_buckets_for_high_nccl_busbw",
    "ddp.reduce_scatter_with_fp32_accumulation",
    "ddp.fp8_param_gather",
    "ddp.fp4_param_gather",
    "ddp.reuse_grad_buf_for_mxfp8_param_ag",
    "ddp.use_megatron_fsdp",
    "ddp.use_custom_fsdp",
    "ddp.data_parallel_sharding_strategy",
    "ddp.gradient_reduce_div_fusion",
    "ddp.suggested_communication_unit_size",
    "ddp.preserve_fp32_weights",
    "ddp.keep_fp8_transpose_cache",
    "ddp.nccl_ub",
    "ddp.fsdp_double_buffer",
    "ddp.outer_dp_sharding_strategy",
    "ddp.disable_symmetric_registration",
    "ddp.delay_wgrad_compute",
};
constexpr NestedClass nested_ddp_classes[] = {{"ddp", "DistributedDataParallelConfig"}};

ContextExchange exchange_of(const StrategyArgumentReader& reader) {
  const std::string type = reader.text(context_type);
  if (type == "p2p") {
    return ContextExchange::ring;
  }
  if (type == "a2a") {
    return ContextExchange::all_to_all;
  }
  if (type == "all_gather") {
    return ContextExchange::all_gather;
  }
  if (type == "a2a+p2p") {
    throw UnmodelledArgument("the hierarchical cp_comm_type a2a+p2p is not modelled", context_type,
                             "write p2p, a2a or all_gather");
  }
  throw RefusedArgument(fmt::format("ValueError: Unsupported communication type: {}!", type),
                        context_type, "write p2p, a2a or all_gather");
}

int64_t size_argument(const StrategyArgumentReader& reader, const char* name) {
  constexpr int64_t most = 1'000'000;
  const int64_t size = reader.integer(name);
  if (size < 1 || size > most) {
    throw ArgumentProblem(fmt::format("{} must be 1 to {}, not {}", name, most, size), name);
  }
  return size;
}

MegatronOptions options_of(const StrategyArguments& given) {
  const StrategyArguments arguments = without_class_names(given, nested_ddp_classes);
  check_nested_names(arguments, {"MegatronStrategy", known_ddp_names, unmodelled_ddp_names});
  const StrategyArgumentReader reader(arguments, megatron_arguments());
  MegatronOptions options;
  options.sequence_parallel = reader.boolean(by_positions);
  options.micro_batch_size = size_argument(reader, micro_batch_key);
  const auto* text =
      arguments.find("ddp") == nullptr ? nullptr : std::get_if<std::string>(arguments.find("ddp"));
  if (text != nullptr && *text == "pytorch") {
    throw UnmodelledArgument(
        "torch's DistributedDataParallel in place of Megatron-LM's is not "
        "modelled here",
        "ddp", "leave `ddp` out, or use DDPStrategy");
  }
  if (text != nullptr && *text != "megatron") {
    throw RefusedArgument(fmt::format("ValueError: Invalid DDP type: {}", *text), "ddp",
                          "write megatron, or {DistributedDataParallelConfig: {..}}");
  }
  options.use_distributed_optimizer = arguments.boolean("ddp.use_distributed_optimizer", false);
  options.overlap_grad_reduce = arguments.boolean("ddp.overlap_grad_reduce", false);
  options.overlap_param_gather = arguments.boolean("ddp.overlap_param_gather", false);
  options.average_in_collective = arguments.boolean("ddp.average_in_collective", false);
  options.grad_reduce_in_fp32 = arguments.boolean("ddp.grad_reduce_in_fp32", true);
  if (arguments.has("ddp.bucket_size")) {
    options.bucket_size = arguments.integer("ddp.bucket_size", 1);
    if (*options.bucket_size < 1) {
      throw ArgumentProblem("bucket_size is a number of parameters, 1 or more", "ddp.bucket_size");
    }
  }
  if (options.overlap_param_gather &&
      !(options.use_distributed_optimizer && options.overlap_grad_reduce)) {
    throw RefusedArgument(
        "AssertionError: overlap_param_gather is only supported with use_distributed_optimizer and "
        "overlap_grad_reduce",
        "ddp.overlap_param_gather", "set both of them, or leave it out");
  }
  return options;
}

/// parallel_state.initialize_model_parallel: experts have a mesh of their own over the ranks of a
/// stage.
ExpertPart expert_part_of(const StrategyArgumentReader& reader, const StrategyArguments& arguments,
                          const MegatronMesh& mesh, int32_t world_size) {
  const int32_t tensor_ranks = mesh.mesh.tensor_ranks;
  ExpertPart part;
  part.ranks = static_cast<int32_t>(size_argument(reader, expert_size));
  part.tensor_ranks = arguments.has(expert_tensor_size)
                          ? static_cast<int32_t>(size_argument(reader, expert_tensor_size))
                          : tensor_ranks;
  if (part.tensor_ranks != tensor_ranks && (part.tensor_ranks != 1 || part.ranks == 1)) {
    throw UnmodelledArgument(fmt::format("{} is modelled as {}, or 1 beside {} above 1",
                                         expert_tensor_size, tensor_size, expert_size),
                             expert_tensor_size,
                             fmt::format("write {}: {}", expert_tensor_size, tensor_ranks));
  }
  const int64_t all = int64_t{part.ranks} * part.tensor_ranks * mesh.shape.ranks;
  if (world_size % all != 0) {
    const int64_t others = int64_t{part.tensor_ranks} * mesh.shape.ranks;
    throw RefusedArgument(
        fmt::format("RuntimeError: world_size ({}) is not divisible by "
                    "expert_tensor_model_pipeline_parallel size ({})",
                    world_size, all),
        expert_size,
        world_size % others == 0
            ? fmt::format("write {}: {}; its product with {} ({}) and {} ({}) has to divide the {} "
                          "ranks",
                          expert_size, divisors_of(world_size / others, part.ranks),
                          expert_tensor_size, part.tensor_ranks, pipeline_size, mesh.shape.ranks,
                          world_size)
            : fmt::format("choose {} and {} whose product with {} divides the {} ranks",
                          expert_size, expert_tensor_size, pipeline_size, world_size));
  }
  return part;
}

int64_t blocks_of(const Network& network) {
  int64_t count = 0;
  std::optional<size_t> last;
  for (const NetworkBlock& block : network.blocks) {
    if (block.repeats && (!last || block.first > *last)) {
      ++count;
      last = block.last;
    }
  }
  return count;
}

/// Of so many layers, which the stages do not divide. `ranks`: among which pipelines are divided.
std::string remedy_of_stages(int64_t blocks, const PipelineShape& shape, int64_t ranks) {
  if (blocks % shape.ranks != 0) {
    const int64_t common = std::gcd(blocks, ranks);
    const std::string length =
        fmt::format("a number of layers that {} divides, such as {}", shape.stages(),
                    nearest_multiples(blocks, shape.stages()));
    return common == 1 ? fmt::format("choose {}, or write {}: 1", length, pipeline_size)
                       : fmt::format("write {}: {}, or choose {}", pipeline_size,
                                     divisors_of(common, shape.ranks), length);
  }
  const int64_t of_rank = blocks / shape.ranks;  // layers
  return of_rank == 1
             ? fmt::format("leave {} out: each rank has one layer", virtual_size)
             : fmt::format("write {}: {}, which divides the {} layers of a rank, or leave it out",
                           virtual_size, divisors_of(of_rank, shape.stages_per_rank, 2), of_rank);
}

std::vector<StageLayers> megatron_stages(const Network& network, const PipelineShape& shape,
                                         int64_t ranks) {
  const int64_t blocks = blocks_of(network);
  if (blocks > 0 && blocks % shape.stages() != 0) {
    throw RefusedArgument(fmt::format("AssertionError: num_layers should be divisible by "
                                      "pipeline_model_parallel_size: {} layers in {} stages",
                                      blocks, shape.stages()),
                          blocks % shape.ranks == 0 ? virtual_size : pipeline_size,
                          remedy_of_stages(blocks, shape, ranks));
  }
  StageCuts cuts = cut_into_stages(network, shape.stages(),
                                   blocks > 0 ? StageSplit::blocks : StageSplit::parameters);
  if (!cuts.why_not.empty()) {
    throw ArgumentProblem(cuts.why_not, pipeline_size, cuts.remedy);
  }
  return cuts.stages;
}

/// A global batch that micro-batches of all replicas, `together`, divide, and of stages in turns
/// the ranks of a pipeline as well.
std::string remedy_of_batch(int64_t all, int64_t together, const MegatronMesh& mesh) {
  const int64_t step = mesh.shape.stages_per_rank > 1 ? together * mesh.shape.ranks : together;
  return fmt::format(
      "write {}: {} and, divided by the number of replicas, data.train.batch_size: {}",
      global_batch_key, nearest_multiples(all, step),
      nearest_multiples(all / mesh.data_ranks(), step / mesh.data_ranks()));
}

/// `argument`: what decides the number of micro-batches.
void check_interleaved(const MegatronMesh& mesh, int64_t all, int64_t together,
                       const char* argument) {
  const std::string why = why_no_megatron_schedule(mesh.shape);
  if (why.empty()) {
    return;
  }
  if (mesh.shape.ranks < 2) {
    throw RefusedArgument(why, virtual_size,
                          fmt::format("leave it out, or set {} to 2 or more", pipeline_size));
  }
  throw RefusedArgument(
      why, argument,
      fmt::format("{}, or leave {} out", remedy_of_batch(all, together, mesh), virtual_size));
}

}  // namespace

MegatronMesh megatron_mesh_of(const StrategyArguments& arguments, int32_t world_size) {
  const StrategyArgumentReader reader(arguments, megatron_arguments());
  const int64_t tensor = size_argument(reader, tensor_size);
  const int64_t pipeline = size_argument(reader, pipeline_size);
  const int64_t context = size_argument(reader, context_size);
  const int64_t model = tensor * pipeline * context;
  if (model > world_size || world_size % model != 0) {
    throw RefusedArgument(
        fmt::format("RuntimeError: world_size ({}) is not divisible by {}", world_size, model),
        context > 1  ? context_size
        : tensor > 1 ? tensor_size
                     : pipeline_size,
        fmt::format(
            "the product of {} ({}), {} ({}) and {} ({}) has to divide the number of ranks: "
            "choose sizes whose product is {}, or use {} ranks",
            tensor_size, tensor, pipeline_size, pipeline, context_size, context,
            divisors_of(world_size, model), nearest_multiples(world_size, model)));
  }
  MegatronMesh found;
  found.mesh.tensor_ranks = static_cast<int32_t>(tensor);
  found.mesh.replicas = static_cast<int32_t>(world_size / (tensor * pipeline));
  found.context = {static_cast<int32_t>(context), exchange_of(reader)};
  found.shape.ranks = static_cast<int32_t>(pipeline);
  found.shape.stages_per_rank =
      arguments.has(virtual_size) ? static_cast<int32_t>(size_argument(reader, virtual_size)) : 1;
  found.experts = expert_part_of(reader, arguments, found, world_size);
  const int64_t micro = size_argument(reader, micro_batch_key);
  const int64_t all = size_argument(reader, global_batch_key);
  const int64_t together = micro * found.data_ranks();
  if (all % together != 0) {
    throw RefusedArgument(
        fmt::format("AssertionError: global batch size ({}) is not divisible by micro batch size "
                    "({}) times data parallel size ({})",
                    all, micro, found.data_ranks()),
        arguments.has(global_batch_key) ? global_batch_key : micro_batch_key,
        remedy_of_batch(all, together, found));
  }
  found.shape.micro_batches = static_cast<int32_t>(all / together);
  check_interleaved(found, all, together,
                    arguments.has(global_batch_key) ? global_batch_key : virtual_size);
  return found;
}

MegatronPlan megatron_plan_of(const TrainingPlan& plan, const StrategyArguments& arguments) {
  MegatronPlan megatron{{}, options_of(arguments)};
  PipelinePlan& pipeline = megatron.pipeline;
  const MegatronMesh mesh = megatron_mesh_of(arguments, std::max(1, plan.world_size));
  megatron.context_ranks = mesh.context.ranks;
  megatron.experts = has_mixtures(*plan.network) ? mesh.experts : ExpertPart{};
  pipeline.shape = mesh.shape;
  pipeline.mesh = mesh.mesh;
  pipeline.kind = mesh.shape.stages_per_rank > 1 ? PipelineScheduleKind::interleaved
                                                 : PipelineScheduleKind::one_forward_one_backward;
  if (megatron.options.sequence_parallel && pipeline.mesh.tensor_ranks == 1) {
    throw RefusedArgument(
        "ValueError: Can not use sequence parallelism without tensor parallelism", by_positions,
        "set tensor_model_parallel_size to 2 or more, or leave sequence_parallel out");
  }
  if (!plan.network->modules.empty() || plan.optimizers.size() != 1 ||
      plan.optimizers.front().sharding != OptimizerPlan::Sharding::none) {
    throw UnmodelledArgument(
        "MegatronStrategy with several modules or optimizers, or with a divided one, is not "
        "modelled",
        "", "give it one model and one optimizer");
  }
  // megatron/core/optimizer/optimizer_config.py: `optimizer` is adam or sgd.
  const OptimizerRule& rule = rule_of(plan.optimizers.front().kind);
  if (rule.kernel() == Kernel::optimizer_step) {
    throw UnmodelledArgument(
        fmt::format("{} under MegatronStrategy is not modelled: its optimizer is Adam or SGD",
                    rule.name()),
        "", "use Adam, AdamW or SGD");
  }
  const Network& whole = plan.whole_network != nullptr ? *plan.whole_network : *plan.network;
  const bool divides =
      mesh.mesh.tensor_ranks > 1 || mesh.context.ranks > 1 || mesh.experts.all_ranks() > 1;
  if (plan.whole_network == nullptr && divides) {
    megatron_cut_of(whole, arguments, std::max(1, plan.world_size));  // says why it was not cut
  }
  pipeline.stages =
      megatron_stages(whole, pipeline.shape, int64_t{pipeline.shape.ranks} * mesh.data_ranks());
  if (plan.whole_network != nullptr) {
    pipeline.stages = stages_of_part(pipeline.stages, whole, *plan.network);
  }
  return megatron;
}

}  // namespace lockstep
