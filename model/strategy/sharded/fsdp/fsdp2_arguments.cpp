// ModelParallelStrategy's arguments, and what configure_model calls fully_shard with.
#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/network/optimizer/optimizer_rule.hpp"
#include "model/strategy/local_model/tensor_sites.hpp"
#include "model/strategy/registry.hpp"
#include "model/strategy/sharded/fsdp/fsdp2.hpp"
#include "model/strategy/sharded/fsdp/fsdp2_sites.hpp"
#include "model/strategy/sharded/fsdp/wrap_arguments.hpp"
#include "model/strategy/strategy_steps.hpp"
#include "model/strategy/tensor/tensor_arguments.hpp"
#include "model/strategy/tensor/tensor_parallel.hpp"

namespace lockstep {

namespace {

constexpr const char* data_parallel_size = "data_parallel_size";

// lightning/pytorch/strategies/model_parallel.py; fully_shard is what its users call themselves.
constexpr std::array model_parallel_rows{
    StrategyArgument{data_parallel_size, "", "auto", "replicas, among which FSDP2 shards",
                     ArgumentUse::strategy, "auto: the number of nodes"},
    StrategyArgument{"tensor_parallel_size", "", "auto", "ranks that compute each replica together",
                     ArgumentUse::strategy, "auto: the GPUs of a node"},
    StrategyArgument{parallelize_plan, "", "null",
                     "what configure_model calls parallelize_module with: a style for each module",
                     ArgumentUse::strategy,
                     "null: no layer is cut; auto: as transformers usually are"},
    StrategyArgument{"fully_shard", "map", "null",
                     "what configure_model calls fully_shard with: modules, mesh, mp_policy, ..",
                     ArgumentUse::strategy, "null: the whole model is one unit"},
    StrategyArgument{"save_distributed_checkpoint", "bool", "true",
                     "every rank writes its part of a checkpoint; false: rank 0 all of it"},
    process_group_backend,
    process_group_timeout,
};

bool is_number(const StrategyArguments& arguments, const char* name) {
  const StrategyArguments::Value* value = arguments.find(name);
  return value != nullptr && std::holds_alternative<int64_t>(*value);
}

// Replicas grow in number; a replica has as many ranks as before.
ArgumentsOfSize of_size(const StrategyArguments& arguments, int64_t ranks) {
  ArgumentsOfSize changed;
  const char* const tensor = "tensor_parallel_size";
  const int64_t in_replica = is_number(arguments, tensor) ? arguments.integer(tensor, 1) : 1;
  if (is_number(arguments, data_parallel_size)) {
    if (in_replica < 1 || ranks % in_replica != 0) {
      changed.why_not = fmt::format("{} {} does not divide {}", tensor, in_replica, ranks);
      return changed;
    }
    changed.values.emplace_back(data_parallel_size, std::to_string(ranks / in_replica));
  }
  if (arguments.has(fully_shard_mesh)) {
    changed.values.emplace_back(fully_shard_mesh,
                                is_flat_mesh(arguments, fully_shard_mesh)
                                    ? fmt::format("[{}]", ranks / in_replica)
                                    : mesh_of_size(arguments, fully_shard_mesh, ranks));
    if (changed.values.back().second.empty()) {
      changed.why_not = fmt::format("the shards of {} do not divide {}", fully_shard_mesh, ranks);
    }
  }
  return changed;
}

// What cannot be a mesh is refused where the strategy is made.
std::optional<MeshSizes> possible_sizes(const StrategyArguments& arguments, int32_t world_size,
                                        int32_t node_ranks) {
  try {
    return mesh_sizes(arguments, world_size, node_ranks);
  } catch (const ArgumentProblem&) {
    return std::nullopt;
  }
}

TrainerMembership membership(const StrategyArguments& arguments, const Place& place) {
  TrainerMembership membership = TrainerMembership::of_every_rank(place);
  if (const auto sizes = possible_sizes(arguments, place.world_size, place.local_world_size)) {
    membership.data_parallel_size = sizes->data;
    membership.data_parallel_index = membership.trainer_index / sizes->tensor;
    membership.counts_samples = membership.trainer_index % sizes->tensor == 0;
  }
  return membership;
}

std::vector<std::pair<std::string, std::string>> without_effect(
    const TrainingPlan& plan, const StrategyArguments& arguments) {
  std::vector<std::pair<std::string, std::string>> found;
  const auto sizes = possible_sizes(arguments, plan.world_size, plan.node_ranks);
  if (arguments.has(fully_shard_modules)) {
    const WrapPolicy policy = wrap_classes(arguments.texts(fully_shard_modules));
    if (std::string why = what_wraps_nothing(policy, *plan.network, fully_shard_modules);
        !why.empty()) {
      found.emplace_back(fully_shard_modules, std::move(why));
    }
  }
  if (copies_unpinned(arguments)) {
    found.emplace_back(fully_shard_pin_memory,
                       "`pin_memory: false` makes the host wait for every copy between it and the "
                       "GPU, which times here are without");
  }
  if (sizes && sizes->tensor > 1 && plan.whole_network == nullptr) {
    found.emplace_back("tensor_parallel_size",
                       fmt::format("no module is in {}: all {} ranks of a replica compute the "
                                   "whole model, and nothing keeps them alike",
                                   parallelize_plan, sizes->tensor));
  }
  return found;
}

std::optional<CutNetwork> cut(const Network& whole, const StrategyArguments& arguments,
                              int32_t world_size, int32_t node_ranks) {
  const auto sizes = possible_sizes(arguments, world_size, node_ranks);
  return sizes ? cut_by_plan(whole, arguments, sizes->tensor) : std::nullopt;
}

bool holds_matrix(const OptimizerPlan& optimizer, const Network& network) {
  for (size_t layer = 0; layer < network.layers.size(); ++layer) {
    for (const ParameterTensor& parameter : network.layers[layer].parameters) {
      if (optimizer.holds(layer) && parameter.trainable && parameter.shape.size() == 2) {
        return true;
      }
    }
  }
  return false;
}

// Adafactor raises at the first matrix that is a DTensor. Of other tensors it takes norms of what a
// rank has, which nobody has recorded.
void check_optimizers(const TrainingPlan& plan, const FullyShard2Options& options) {
  for (const OptimizerPlan& optimizer : plan.optimizers) {
    const OptimizerRule& rule = rule_of(optimizer.kind);
    if (!rule.is_elementwise() && options.offload) {
      throw UnmodelledArgument(fmt::format("{} with an offload_policy is not modelled: its norms "
                                           "are added up over ranks, in host memory",
                                           rule.name()),
                               "fully_shard.offload_policy", "leave it out, or use AdamW");
    }
    if (optimizer.kind == OptimizerKind::adafactor && !holds_matrix(optimizer, *plan.network)) {
      throw UnmodelledArgument("Adafactor of DTensors of which none is a matrix is not modelled",
                               "", "use AdamW, or ddp");
    }
  }
}

FullyShard2Options options_of(const TrainingPlan& plan, const StrategyArguments& arguments) {
  parallel_plan_of(arguments);  // throws for what is no style
  FullyShardCaller caller{"ModelParallelStrategy"};
  if (plan.world_size > 0) {
    caller.tensor_ranks = mesh_sizes(arguments, plan.world_size, plan.node_ranks).tensor;
    caller.replicas = plan.world_size / caller.tensor_ranks;
  }
  FullyShard2Options options = fully_shard_options(plan, arguments, caller);
  options.saves_in_parts =
      StrategyArgumentReader(arguments, model_parallel_rows).boolean("save_distributed_checkpoint");
  if (!options.saves_in_parts && options.tensor_ranks > 1) {
    throw UnmodelledArgument(
        "a checkpoint of rank 0 alone beside tensor parallelism is not modelled",
        "save_distributed_checkpoint", "leave it true");
  }
  return options;
}

std::unique_ptr<Strategy> make(const TrainingPlan& plan, const StrategyArguments& arguments) {
  const FullyShard2Options options = options_of(plan, arguments);
  check_optimizers(plan, options);
  const bool is_one_replica = options.tensor_ranks == plan.world_size && options.tensor_ranks > 1;
  if (!is_one_replica && !plan.has_streams) {
    // FSDPCommContext.lazy_init of torch/distributed/_composable/fsdp/_fsdp_param_group.py.
    throw RefusedArgument(
        "fully_shard needs streams of the device, which torch before 2.7 does not have on CPUs: "
        "\"RuntimeError: FSDP requires CUDA for streams\", in 2.6 an AttributeError of "
        "torch.cpu.Stream",
        "", "use torch 2.7 or newer, accelerator: gpu, or ddp");
  }
  if (!is_one_replica) {
    return std::make_unique<FullyShard2>(plan, options);
  }
  // Lightning's own example calls fully_shard only where there are several replicas.
  for (const char* name : {"fully_shard.mp_policy.param_dtype", "fully_shard.offload_policy"}) {
    if (arguments.has(name)) {
      throw UnmodelledArgument("fully_shard of one replica, which nobody shards, is not modelled",
                               name, "leave it out, or use a larger data_parallel_size");
    }
  }
  return std::make_unique<TensorParallel>(plan);
}

}  // namespace

StrategyEntry model_parallel() {
  StrategyEntry entry;
  entry.name = "ModelParallelStrategy";
  entry.class_name = "ModelParallelStrategy";
  entry.traits = {.precisions = Precisions::no_double_nor_scaler,
                  .statistics = StatisticsSharing::ignored,
                  .accumulates_whole_gradients = true,
                  .takes_tensor_norms = true,
                  .gathers_parameters = "unshard() of its module, or full_tensor(),"};
  entry.arguments = {model_parallel_rows.begin(), model_parallel_rows.end()};
  add_steps(fsdp2_sites::every_step, entry.sites);
  add_steps(tensor_sites::every_step, entry.sites);
  entry.of_size = of_size;
  entry.without_effect = without_effect;
  entry.membership = membership;
  entry.cut = cut;
  entry.make = make;
  return entry;
}

}  // namespace lockstep
