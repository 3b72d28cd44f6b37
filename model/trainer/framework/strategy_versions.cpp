// What versions of Lightning do otherwise with strategies of one name: strategies/*.py and
// plugins/precision/fsdp*.py
// of 1.4.9, 1.5.10, 1.7.7, 1.8.6, 1.9.5, 2.0.9, 2.1.4, 2.2.5, 2.3.3, 2.4.0, 2.5.6 and 2.6.0.
#include "model/trainer/framework/strategy_versions.hpp"

#include <algorithm>
#include <array>

#include "model/trainer/framework/lightning_versions.hpp"

namespace lockstep {

namespace {

constexpr auto arguments_of_versions = std::to_array<ArgumentOfVersions>({
    {"DDPStrategy", "model_averaging_period", v1_5},
    {"DDPStrategy", "timeout", v1_7},
    {"DDPStrategy", "start_method", v2_0},
    {"DDPSpawnStrategy", "timeout", v1_7},
    {"DDPSpawnStrategy", "start_method", v1_7},
    {"DDPShardedStrategy", "model_averaging_period", v1_5},
    {"DDPShardedStrategy", "timeout", v1_7},
    {"DDPSpawnShardedStrategy", "timeout", v1_7},
    {"DDPSpawnShardedStrategy", "start_method", v1_7},
    {"DDPFullyShardedNativeStrategy", "activation_checkpointing", v1_9},
    {"DeepSpeedStrategy", "load_full_weights", v1_5},
    {"DeepSpeedStrategy", "save_full_weights", {}, v1_5},
    {"DeepSpeedStrategy", "cpu_offload", {}, v1_5},
    {"DeepSpeedStrategy", "cpu_offload_params", {}, v1_5},
    {"DeepSpeedStrategy", "cpu_offload_use_pin_memory", {}, v1_5},
    {"DeepSpeedStrategy", "partition_module", {}, v1_5},
    {"DeepSpeedStrategy", "timeout", v2_5},
    {"DeepSpeedStrategy", "exclude_frozen_parameters", v2_5},
    {"FSDPStrategy", "timeout", v2_1},
    {"FSDPStrategy", "activation_checkpointing_policy", v2_1},
    {"FSDPStrategy", "state_dict_type", v2_1},
    {"FSDPStrategy", "device_mesh", v2_2},
    {"FSDPStrategy", "process_group", v2_1},
    {"XLAStrategy", "sync_module_states", v2_1},
});

/// What a strategy is given by versions [since, until).
struct VersionedArgument {
  std::string_view strategy;
  Version since;
  Version until;
  std::string_view argument;
};
// FSDPStrategy of 2.0 leaves to torch what it does not name, hands it the default process group and
// saves as the native strategy of 1.x did. Until 2.6 mixed precision is autocast over parameters
// that are gathered in fp32. Sharded plugins of 1.4 have no block_backward_sync of their own and
// wrap the model without a fit, too, and OSS is not told to send fp16 by the spawned one until 1.8
// (overrides/fairscale.py). XLAStrategy of 2.0 and TPUSpawnStrategy send nothing at the start, save
// by xm.save, and broadcast what rank 0 has, whatever `src` says.
constexpr auto versioned = std::to_array<VersionedArgument>({
    {"fsdp_native", v1_7, v2_0, "default_process_group=true"},
    {"fsdp", v2_0, v2_1, "default_process_group=true"},
    {"fsdp", v2_0, v2_1, "use_orig_params=false"},
    {"fsdp", v2_0, v2_1, "limit_all_gathers=false"},
    {"fsdp", v2_0, v2_1, "gathers_optimizer_state=false"},
    {"fsdp", v2_0, v2_1, "clips_by_own_norm=true"},
    {"fsdp", v2_0, v2_6, "wide_mixed_precision=true"},
    {"ddp_sharded", {}, v1_5, "wraps_without_fit=true"},
    {"ddp_sharded", {}, v1_5, "accumulates_under_no_sync=false"},
    {"ddp_sharded_spawn", {}, v1_5, "wraps_without_fit=true"},
    {"ddp_sharded_spawn", {}, v1_5, "accumulates_under_no_sync=false"},
    {"ddp_sharded_spawn", {}, v1_8, "broadcasts_fp16=false"},
    {"xla", {}, v2_1, "sync_module_states=false"},
    {"xla", {}, v2_1, "saves_on_all_ranks=true"},
    {"xla", {}, v2_1, "has_root=false"},
});

/// The first version whose class gives the process group a limit of its own.
struct OwnTimeLimit {
  std::string_view class_name;
  Version since;
};
// Lightning's default is default_pg_timeout. DeepSpeed's init_distributed has one of its own
// (deepspeed/constants.py), which Lightning hands over since 2.5. The others leave it to torch.
constexpr auto own_limits = std::to_array<OwnTimeLimit>({
    {"DDPStrategy", v1_7},
    {"DDPShardedStrategy", v1_7},
    {"DDPSpawnShardedStrategy", v1_7},
    {"DDPFullyShardedStrategy", v1_7},
    {"FSDPStrategy", v2_1},
    {"ModelParallelStrategy", v2_3},
    {"DeepSpeedStrategy", {}},
});

bool hands_over_limit(const TimeLimitSituation& situation) {
  const auto* const row =
      std::ranges::find(own_limits, situation.class_name, &OwnTimeLimit::class_name);
  return row != own_limits.end() && situation.lightning >= row->since && !situation.is_none;
}

}  // namespace

const ArgumentOfVersions* versions_of_argument(std::string_view class_name,
                                               std::string_view argument) {
  const auto* const found =
      std::ranges::find_if(arguments_of_versions, [&](const ArgumentOfVersions& row) {
        return row.class_name == class_name && row.argument == argument;
      });
  return found == arguments_of_versions.end() ? nullptr : found;
}

std::vector<std::string_view> arguments_of_version(std::string_view strategy,
                                                   const Version& lightning) {
  std::vector<std::string_view> found;
  for (const VersionedArgument& row : versioned) {
    if (row.strategy == strategy && row.since <= lightning && lightning < row.until) {
      found.push_back(row.argument);
    }
  }
  return found;
}

bool clips_shards_by_norm(std::string_view strategy, const Version& lightning) {
  return std::ranges::count(arguments_of_version(strategy, lightning), "clips_by_own_norm=true") !=
         0;
}

// torch/distributed/constants.py: default_pg_timeout is 30 min. From 2.2 on NCCL has 10
// (pytorch pull requests 110947 and 113094); Lightning before 2.2 came with older ones.
Time default_time_limit(const TimeLimitSituation& situation) {
  const bool is_older = !situation.class_name.empty() && situation.lightning < v2_2;
  const Version torch = situation.torch.value_or(is_older ? Version{2, 1, 0} : Version{2, 11, 0});
  const bool has_longer = situation.gloo || torch < Version{2, 2, 0} || hands_over_limit(situation);
  return has_longer ? 30_min : 10_min;
}

}  // namespace lockstep
