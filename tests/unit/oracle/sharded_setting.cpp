#include "tests/unit/oracle/sharded_setting.hpp"

#include <algorithm>

#include "model/network/tensor_parallel/cut_network.hpp"
#include "model/strategy/data_parallel/ddp.hpp"
#include "model/strategy/pipeline/sharded_pipeline.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed.hpp"
#include "model/strategy/sharded/fairscale/fairscale.hpp"
#include "model/strategy/sharded/fairscale/fully_sharded.hpp"
#include "model/strategy/sharded/fsdp/fsdp.hpp"
#include "model/strategy/sharded/fsdp/fsdp2.hpp"
#include "model/strategy/tensor/tensor_parallel.hpp"
#include "tests/unit/oracle/our_run.hpp"

namespace lockstep::test {

using nlohmann::json;

namespace {

std::optional<DType> dtype_from(const json& types, const char* name) {
  const json value = types.value(name, json());
  return value.is_null() ? std::nullopt : dtype_named(value.get<std::string>());
}

WrapPolicy wrap_from(const json& given) {
  WrapPolicy wrap;
  for (const json& unit : given["units"]) {
    wrap.modules.push_back({unit[0].get<size_t>(), unit[1].get<size_t>()});
  }
  std::sort(wrap.modules.begin(), wrap.modules.end(),
            [](const WrappedModule& a, const WrappedModule& b) {
              return std::pair(a.first, b.last) < std::pair(b.first, a.last);
            });
  return wrap;
}

FullyShardedOptions options_from(const json& given) {
  using Sharding = FullyShardedOptions::Sharding;
  using Prefetch = FullyShardedOptions::BackwardPrefetch;
  const std::map<std::string, Sharding> shardings{
      {"FULL_SHARD", Sharding::full},
      {"SHARD_GRAD_OP", Sharding::grad_op},
      {"NO_SHARD", Sharding::none},
      {"HYBRID_SHARD", Sharding::hybrid},
      {"_HYBRID_SHARD_ZERO2", Sharding::hybrid_grad_op}};
  FullyShardedOptions options;
  options.sharding = shardings.at(given["sharding_strategy"]);
  const json& prefetch = given["backward_prefetch"];
  options.backward_prefetch = prefetch.is_null()           ? Prefetch::none
                              : prefetch == "BACKWARD_PRE" ? Prefetch::before
                                                           : Prefetch::after;
  options.forward_prefetch = given.value("forward_prefetch", false);
  options.limit_all_gathers = given.value("limit_all_gathers", true);
  options.use_orig_params = given.value("use_orig_params", false);
  options.sync_module_states = given.value("sync_module_states", false);
  if (given.contains("mesh")) {
    options.shard_ranks = given["mesh"][1];
  }
  if (given["mixed_precision"].is_object()) {
    options.param_dtype = dtype_from(given["mixed_precision"], "param_dtype");
    options.reduce_dtype = dtype_from(given["mixed_precision"], "reduce_dtype");
    options.casts_input = given["mixed_precision"].value("cast_root_forward_inputs", true) ||
                          given["mixed_precision"].value("cast_forward_inputs", false);
  }
  options.wrap = wrap_from(given);
  return options;
}

FullyShard2Options fsdp2_options_from(const json& given, WrapPolicy wrap) {
  FullyShard2Options options;
  const json reshard = given.value("reshard_after_forward", json());
  if (reshard.is_boolean()) {
    options.reshard_after_forward = reshard.get<bool>();
  } else if (reshard.is_number()) {
    options.reshard_to = reshard;
  }
  if (given.contains("mesh")) {
    options.shard_ranks = given["mesh"][1];
  }
  const json types = given.value("mixed_precision", json());
  if (types.is_object()) {
    options.param_dtype = dtype_from(types, "param_dtype");
    options.reduce_dtype = dtype_from(types, "reduce_dtype");
    options.casts_input = types.value("cast_forward_inputs", true);
    options.widens_output = types.contains("output_dtype");
  }
  options.wrap = std::move(wrap);
  return options;
}

ShardedDataParallelOptions fairscale_options_from(const json& setting) {
  using Broadcast = ShardedDataParallelOptions::Broadcast;
  const json& given = setting["fairscale"];
  ShardedDataParallelOptions options;
  options.reduce_buffer_size = given.value("reduce_buffer_size", int64_t{1} << 23);
  options.broadcast_buffers = given.value("broadcast_buffers", true);
  options.reduce_fp16 = given.value("reduce_fp16", false);
  options.clips_by_whole_norm = true;
  if (given.value("oss", json::object()).value("broadcast_fp16", false)) {
    options.broadcast = Broadcast::half;
  }
  return options;
}

FairScaleShardingOptions fairscale_fsdp_options_from(const json& given) {
  FairScaleShardingOptions options;
  options.reshard_after_forward = given.value("reshard_after_forward", true);
  options.bucket_cap_mb = given.value("bucket_cap_mb", 25.0);
  options.clips_by_whole_norm = true;
  options.wrap = wrap_from(given);
  return options;
}

void set_arguments(const std::string& prefix, const json& given, StrategyArguments& arguments) {
  for (const auto& [key, value] : given.items()) {
    const std::string name = prefix + "." + key;
    if (value.is_object()) {
      set_arguments(name, value, arguments);
    } else if (value.is_boolean()) {
      arguments.set(name, value.get<bool>());
    } else if (value.is_string()) {
      arguments.set(name, value.get<std::string>());
    } else if (value.is_number_integer()) {
      arguments.set(name, value.get<int64_t>());
    } else {
      arguments.set(name, value.get<double>());
    }
  }
}

}  // namespace

namespace {

Network whole_network(const json& setting) {
  Network network = network_of_setting(setting);
  const json checkpointed = setting.value("checkpointed", json::object());
  for (const json& segment : checkpointed.value("segments", json::array())) {
    const size_t first = segment[0];
    const size_t last = segment[1];
    network.segments.push_back(
        {first, last,
         checkpointed["by"] == "fairscale" ? Recomputation::fairscale : Recomputation::torch});
    network.blocks.push_back({"Sequential", first, last});
  }
  return network;
}

ParallelPlan parallel_plan(const json& given) {
  ParallelPlan plan;
  for (const auto& [module, style] : given["parallelize_plan"].items()) {
    const ReadStyle read = read_parallel_style(style.get<std::string>());
    ensure(read.style.has_value(), read.why_not.c_str());
    plan.emplace_back(module, *read.style);
  }
  return plan;
}

/// Units are named in layers of the whole network: what was cut has more of them.
constexpr const char* unit_name = "unit";

Network cut_of(Network whole, const json& given) {
  for (const json& unit : given.value("units", json::array())) {
    whole.blocks.push_back({unit_name, unit[0].get<size_t>(), unit[1].get<size_t>()});
  }
  CutNetwork cut = cut_network(whole, parallel_plan(given), given["tensor_parallel_size"]);
  ensure(cut.why_not.empty(), cut.why_not.c_str());
  return std::move(cut.network);
}

std::unique_ptr<Strategy> tensor_strategy(const json& setting, const TrainingPlan& plan) {
  FullyShard2Options options;
  options.tensor_ranks = setting["tensor"]["tensor_parallel_size"];
  if (setting["world_size"] == options.tensor_ranks) {
    return std::make_unique<TensorParallel>(plan);
  }
  for (const NetworkBlock& block : plan.network->blocks) {
    if (block.class_name == unit_name) {
      options.wrap.modules.push_back({block.first, block.last});
    }
  }
  return std::make_unique<FullyShard2>(plan, options);
}

PipelinePlan pipeline_from(const json& setting) {
  const json& given = setting["pipeline"];
  PipelinePlan pipeline;
  pipeline.kind = *pipeline_schedule_named(given["schedule"].get<std::string>());
  pipeline.shape.ranks = given["pipeline_parallel_size"];
  pipeline.shape.micro_batches = given["n_microbatches"];
  for (const json& stage : given["stages"]) {
    pipeline.stages.push_back({stage[0].get<size_t>(), stage[1].get<size_t>() + 1});
  }
  pipeline.shape.stages_per_rank =
      static_cast<int32_t>(given["stages"].size()) / pipeline.shape.ranks;
  pipeline.mesh.replicas = setting["world_size"].get<int32_t>() / pipeline.shape.ranks;
  pipeline.scales_gradients = given.value("scale_grads", true);
  pipeline.loss_on_all_stages = false;
  pipeline.training_loss_on_all_stages = false;
  if (given.contains("fully_shard")) {
    pipeline.shards = fsdp2_options_from(given["fully_shard"], wrap_from(given));
  }
  return pipeline;
}

std::unique_ptr<Strategy> pipeline_strategy(const json& setting, const TrainingPlan& plan) {
  PipelinePlan pipeline = pipeline_from(setting);
  if (pipeline.shards) {
    return std::make_unique<ShardedPipeline>(plan, std::move(pipeline));
  }
  return std::make_unique<TorchPipeline>(plan, std::move(pipeline));
}

}  // namespace

std::optional<size_t> SettingNetworks::layer_of_whole(size_t layer) const {
  if (!cut) {
    return layer;
  }
  const auto found = std::ranges::find(whole->layers, cut->layers[layer].name, &Layer::name);
  return found == whole->layers.end()
             ? std::nullopt
             : std::optional<size_t>(static_cast<size_t>(found - whole->layers.begin()));
}

SettingNetworks sharded_networks(const json& setting) {
  SettingNetworks networks;
  networks.whole = std::make_shared<const Network>(whole_network(setting));
  if (setting.contains("tensor")) {
    networks.cut = std::make_shared<const Network>(cut_of(*networks.whole, setting["tensor"]));
  }
  return networks;
}

TrainingPlan sharded_plan(const json& setting, const SettingNetworks& networks) {
  using Sharding = OptimizerPlan::Sharding;
  TrainingPlan plan = plan_of_setting(setting, networks.of_rank());
  plan.whole_network = networks.cut ? networks.whole.get() : nullptr;
  plan.barrier_is_all_reduce = false;
  plan.deepspeed = Version{0, 16, 4};  // tests/oracle/sharding_sources.txt
  if (setting.contains("zero1")) {
    plan.optimizers.front().sharding = setting["zero1"].value("parameters_as_bucket_view", false)
                                           ? Sharding::zero_redundancy_in_buckets
                                           : Sharding::zero_redundancy;
  }
  if (setting.contains("deepspeed") && setting["deepspeed"].contains("bf16")) {
    plan.activation_dtype = DType::bf16;
  }
  return plan;
}

std::unique_ptr<Strategy> sharded_strategy(const json& setting, const TrainingPlan& plan) {
  const json saved = setting.value("checkpoint", json::object());
  if (setting.contains("fsdp1")) {
    FullyShardedOptions options = options_from(setting["fsdp1"]);
    options.saves_in_parts = saved.value("state_dict_type", "full") == "sharded";
    return std::make_unique<FullyShardedDataParallel>(plan, options);
  }
  if (setting.contains("fsdp2")) {
    FullyShard2Options options = fsdp2_options_from(setting["fsdp2"], wrap_from(setting["fsdp2"]));
    options.saves_in_parts = saved.value("save_distributed_checkpoint", true);
    return std::make_unique<FullyShard2>(plan, options);
  }
  if (setting.contains("tensor")) {
    return tensor_strategy(setting, plan);
  }
  if (setting.contains("pipeline")) {
    return pipeline_strategy(setting, plan);
  }
  if (setting.contains("zero1")) {
    DataParallelOptions options;
    const json ddp = setting["zero1"].value("ddp", json::object());
    if (ddp.contains("bucket_cap_mb")) {
      options.bucket_cap =
          Bytes(static_cast<int64_t>(ddp["bucket_cap_mb"].get<double>() * 1024 * 1024));
    }
    return std::make_unique<DistributedDataParallel>(plan, options);
  }
  if (setting.contains("fairscale")) {
    return std::make_unique<ShardedDataParallel>(plan, fairscale_options_from(setting));
  }
  if (setting.contains("fairscale_fsdp")) {
    return std::make_unique<FairScaleFullySharded>(
        plan, fairscale_fsdp_options_from(setting["fairscale_fsdp"]));
  }
  StrategyArguments arguments;
  nlohmann::json configuration = setting["deepspeed"];
  configuration.erase("gradient_accumulation_steps");  // the Trainer's, in Lightning
  set_arguments("config", configuration, arguments);
  // So in sharded_deepspeed.py.
  arguments.set("config.zero_allow_untested_optimizer", true);
  arguments.set("config.zero_force_ds_cpu_optimizer", false);
  return deepspeed().make(plan, arguments);
}

json with_second_forwards_first(const json& setting, const json& operations) {
  json moved = json::array();
  const json checkpointed = setting.value("checkpointed", json::object());
  const json segments = checkpointed.value("segments", json::array());
  const auto runs_again = [](const json& each, const json& segment) {
    return each.value("pass", "") == "forward" && segment[0] <= each["layer"] &&
           each["layer"] <= segment[1];
  };
  for (size_t i = 0; i < operations.size(); ++i) {
    size_t end = i;
    for (const json& segment : segments) {
      if (operations[i].value("pass", "") != "backward" || operations[i]["layer"] != segment[1]) {
        continue;
      }
      for (size_t k = i + 1; k < operations.size() &&
                             (operations[k].contains("kind") || runs_again(operations[k], segment));
           ++k) {
        end = runs_again(operations[k], segment) ? k : end;
      }
    }
    for (size_t k = i + 1; k <= end; ++k) {
      moved.push_back(operations[k]);
    }
    moved.push_back(operations[i]);
    i = end;
  }
  return moved;
}

}  // namespace lockstep::test
