// torchtitan's parallel_dims.py, parallelize.py and distributed/pipeline_parallel.py: from degrees
// to what is wrapped, cut and scheduled.
#include "model/strategy/torchtitan/torchtitan.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "model/core/nearest_sizes.hpp"
#include "model/strategy/pipeline/pipeline_plan.hpp"

namespace lockstep {

namespace {

constexpr std::array torchtitan_rows{
    StrategyArgument{"data_parallel_replicate_degree", "int", "1",
                     "groups of ranks that hold the same shards"},
    StrategyArgument{"data_parallel_shard_degree", "int", "-1",
                     "ranks among which fully_shard divides parameters", ArgumentUse::strategy,
                     "-1: all ranks that the other degrees leave"},
    StrategyArgument{"fsdp_reshard_after_forward", "text", "default", "default, always or never",
                     ArgumentUse::strategy, "default: always, but never in a pipeline"},
    StrategyArgument{"tensor_parallel_degree", "int", "1",
                     "neighbouring ranks that compute layers together"},
    StrategyArgument{"pipeline_parallel_degree", "int", "1", "ranks of one pipeline"},
    StrategyArgument{"pipeline_parallel_schedule", "text", "1F1B", "its name in torch"},
    StrategyArgument{"pipeline_parallel_microbatch_size", "int", "1",
                     "samples of a micro-batch, which divide batch_size"},
    StrategyArgument{"pipeline_parallel_layers_per_stage", "int", "null",
                     "blocks of a stage, embedding and output counted as those below",
                     ArgumentUse::unmodelled,
                     "null: one stage a rank, two for schedules of several"},
    StrategyArgument{"pipeline_parallel_first_stage_less_layers", "int", "1",
                     "blocks that the embedding counts as"},
    StrategyArgument{"pipeline_parallel_last_stage_less_layers", "int", "1",
                     "blocks that norm and output count as"},
    StrategyArgument{"module_fqns_per_model_part", "", "null", "modules of each stage",
                     ArgumentUse::unmodelled},
    StrategyArgument{"context_parallel_degree", "int", "1", "ranks that divide the positions",
                     ArgumentUse::strategy, "only 1 is modelled here"},
    StrategyArgument{"expert_parallel_degree", "int", "1", "ranks that divide experts",
                     ArgumentUse::strategy, "only 1 is modelled here"},
    StrategyArgument{"expert_tensor_parallel_degree", "int", "1",
                     "ranks that compute an expert together", ArgumentUse::strategy,
                     "only 1 is modelled here"},
    StrategyArgument{"enable_async_tensor_parallel", "bool", "false",
                     "exchanges of tensor parallelism beside computation", ArgumentUse::unmodelled},
    StrategyArgument{"disable_loss_parallel", "bool", "false",
                     "gathers the scores of all classes before the loss", ArgumentUse::unmodelled},
    StrategyArgument{"mixed_precision_param", "text", "bfloat16",
                     "type of gathered parameters, where fully_shard divides them"},
    StrategyArgument{"mixed_precision_reduce", "text", "float32", "type in which it reduces"},
    StrategyArgument{"enable_cpu_offload", "bool", "false",
                     "parameters, gradients and optimizer in host memory"},
};

/// What ParallelDims makes of the degrees.
struct Degrees {
  int64_t replicate = 1;
  int64_t shard = 1;
  int64_t tensor = 1;
  int64_t pipeline = 1;
  int64_t data() const { return replicate * shard; }
};

int64_t degree(const StrategyArgumentReader& given, const char* name, int64_t least = 1) {
  const int64_t value = given.integer(name);
  if (value < least || (least < 0 && value == 0)) {
    throw RefusedArgument(
        least < 0 ? "AssertionError: dp_shard must -1 or >=1."
                  : "AssertionError: Parallelism degree should be >= 1, except for dp_shard",
        name, fmt::format("{} is {}", name, value));
  }
  return value;
}

struct WrongDegree {
  const char* name;
  std::string remedy;
};

/// The first that does not divide the ranks alone, or else the one that may be left to the others.
WrongDegree wrong_degree(const StrategyArgumentReader& given, int64_t ranks) {
  for (const char* name :
       {"tensor_parallel_degree", "pipeline_parallel_degree", "data_parallel_replicate_degree"}) {
    if (const int64_t value = given.integer(name); ranks % value != 0) {
      return {name, fmt::format("write {}: {}, and degrees whose product is {}", name,
                                divisors_of(ranks, value), ranks)};
    }
  }
  const char* const shard = "data_parallel_shard_degree";
  return {shard, fmt::format("write {}: -1, and others whose product divides {}", shard, ranks)};
}

// parallel_dims.py, _validate.
Degrees degrees_of(const StrategyArgumentReader& given, int64_t ranks) {
  Degrees degrees;
  degrees.replicate = degree(given, "data_parallel_replicate_degree");
  degrees.shard = degree(given, "data_parallel_shard_degree", -1);
  degrees.tensor = degree(given, "tensor_parallel_degree");
  degrees.pipeline = degree(given, "pipeline_parallel_degree");
  const int64_t others = degrees.replicate * degrees.tensor * degrees.pipeline;
  if (degrees.shard < 0) {
    degrees.shard = std::max<int64_t>(1, ranks / others);
  }
  if (others * degrees.shard != ranks) {
    const WrongDegree wrong = wrong_degree(given, ranks);
    throw RefusedArgument(
        fmt::format("AssertionError: Invalid parallel dims: dp_replicate({}) * dp_shard({}) * "
                    "cp(1) * tp({}) * pp({}) != WORLD_SIZE({})",
                    degrees.replicate, degrees.shard, degrees.tensor, degrees.pipeline, ranks),
        wrong.name, wrong.remedy);
  }
  if (degrees.shard == 1 && degrees.replicate > 1 && degrees.tensor * degrees.pipeline > 1) {
    throw RefusedArgument("RuntimeError: DDP has not supported > 1D parallelism",
                          "data_parallel_replicate_degree",
                          "use data_parallel_shard_degree in place of it");
  }
  return degrees;
}

void check_unmodelled(const StrategyArgumentReader& given) {
  for (const char* name :
       {"context_parallel_degree", "expert_parallel_degree", "expert_tensor_parallel_degree"}) {
    if (degree(given, name) != 1) {
      throw UnmodelledArgument(fmt::format("{} above 1 of TorchTitan is not modelled", name), name,
                               "use MegatronStrategy with context_parallel_size or "
                               "expert_model_parallel_size");
    }
  }
}

std::string type_of(const StrategyArgumentReader& given, const char* name) {
  const std::string type = given.text(name);
  if (type != "bfloat16" && type != "float32") {
    throw ArgumentProblem(fmt::format("{} is bfloat16 or float32, not {}", name, type), name);
  }
  return type == "bfloat16" ? "bf16" : "fp32";
}

// apply_fsdp: each block, and the rest of a stage or of the model as one.
void set_sharding(const StrategyArgumentReader& given, const Degrees& degrees,
                  StrategyArguments& arguments) {
  arguments.set("fully_shard.modules", std::string("blocks"));
  const std::string policy = given.text("fsdp_reshard_after_forward");
  if (policy != "default" && policy != "always" && policy != "never") {
    throw RefusedArgument(
        fmt::format("ValueError: Invalid reshard_after_forward_policy: {}.", policy),
        "fsdp_reshard_after_forward", "write default, always or never");
  }
  if (policy != "default" || degrees.pipeline > 1) {
    arguments.set("fully_shard.reshard_after_forward", policy == "always");
  }
  if (degrees.replicate > 1) {
    arguments.set("fully_shard.mesh", std::vector<std::string>{std::to_string(degrees.replicate),
                                                               std::to_string(degrees.shard)});
  }
  arguments.set("fully_shard.mp_policy.param_dtype", type_of(given, "mixed_precision_param"));
  arguments.set("fully_shard.mp_policy.reduce_dtype", type_of(given, "mixed_precision_reduce"));
  if (given.boolean("enable_cpu_offload")) {
    arguments.set("fully_shard.offload_policy", std::string("CPUOffloadPolicy"));
  }
}

int64_t micro_batches(const StrategyArgumentReader& given, int64_t batch_size) {
  const char* const name = "pipeline_parallel_microbatch_size";
  const int64_t of_one = degree(given, name);
  if (batch_size % of_one != 0) {
    throw RefusedArgument(fmt::format("ValueError: Batch size {} must be divisible by "
                                      "microbatch_size {}.",
                                      batch_size, of_one),
                          name,
                          fmt::format("write {}: {}, which divides data.train.batch_size", name,
                                      divisors_of(batch_size, of_one)));
  }
  return batch_size / of_one;
}

// Its user writes the size of a micro-batch, where torch's schedules speak of their number.
void check_micro_batches(const StrategyArguments& arguments, const RanksAndBatch& size) {
  try {
    pipeline_shape_of(arguments, static_cast<int32_t>(size.ranks));
  } catch (const ArgumentProblem& problem) {
    if (problem.argument() != "n_microbatches") {
      return;  // refused where the strategy is made
    }
    throw ArgumentProblem(
        fmt::format("{} (data.train.batch_size {} / pipeline_parallel_microbatch_size)",
                    problem.what(), size.batch_size),
        "pipeline_parallel_microbatch_size",
        "make it smaller, or data.train.batch_size larger, so that there are as many micro-batches "
        "as the schedule takes");
  }
}

StrategyBehind pipelined(const StrategyArgumentReader& given, const Degrees& degrees,
                         const RanksAndBatch& size) {
  StrategyBehind behind{"PipelineStrategy", {}};
  StrategyArguments& arguments = behind.arguments;
  arguments.set("schedule", given.text("pipeline_parallel_schedule"));
  arguments.set("n_microbatches", micro_batches(given, size.batch_size));
  arguments.set("pipeline_parallel_size", degrees.pipeline);
  for (const auto& [own, of_titan] :
       {std::pair("first_stage_less_blocks", "pipeline_parallel_first_stage_less_layers"),
        std::pair("last_stage_less_blocks", "pipeline_parallel_last_stage_less_layers")}) {
    arguments.set(own, degree(given, of_titan, 0));
  }
  if (degrees.tensor > 1) {
    arguments.set("tensor_parallel_size", degrees.tensor);
  }
  check_micro_batches(arguments, size);
  return behind;
}

// Also of those that these degrees do not need.
void check_types(const StrategyArgumentReader& given) {
  for (const StrategyArgument& row : torchtitan_rows) {
    const std::string name(row.name);
    if (row.use != ArgumentUse::strategy) {
      continue;
    }
    if (row.type == "int") {
      given.integer(name);
    } else if (row.type == "text") {
      given.text(name);
    } else if (row.type == "bool") {
      given.boolean(name);
    }
  }
}

StrategyBehind strategy_behind(const StrategyArguments& arguments, const RanksAndBatch& size) {
  const StrategyArgumentReader given(arguments, torchtitan_rows);
  check_types(given);
  check_unmodelled(given);
  const Degrees degrees = degrees_of(given, size.ranks);
  if (degrees.pipeline == 1 && degrees.tensor == 1 && degrees.shard == 1) {
    return {degrees.replicate > 1 ? "ddp" : "single_device", {}};
  }
  StrategyBehind behind{"ModelParallelStrategy", {}};
  if (degrees.pipeline > 1) {
    behind = pipelined(given, degrees, size);
  } else {
    behind.arguments.set("data_parallel_size", degrees.data());
    behind.arguments.set("tensor_parallel_size", degrees.tensor);
  }
  if (degrees.tensor > 1) {
    behind.arguments.set("parallelize_plan", std::string("auto"));
  }
  if (degrees.data() > 1) {
    set_sharding(given, degrees, behind.arguments);
  }
  return behind;
}

}  // namespace

StrategyEntry torchtitan() {
  StrategyEntry entry;
  entry.name = "torchtitan";
  entry.class_name = "TorchTitan";
  entry.arguments = {torchtitan_rows.begin(), torchtitan_rows.end()};
  entry.behind = strategy_behind;
  entry.make = [](const TrainingPlan& plan, const StrategyArguments& arguments) {
    const StrategyBehind behind = strategy_behind(arguments, {plan.world_size});
    return standard_strategies().find(behind.class_name)->make(plan, behind.arguments);
  };
  return entry;
}

}  // namespace lockstep
