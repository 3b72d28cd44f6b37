#include "model/trainer/framework/strategy_choice.hpp"
#include "model/trainer/framework/lightning_versions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace lockstep {

namespace {

struct NameRow {
  std::string_view name;
  std::string_view strategy;
  StartMethod start = StartMethod::script;
  std::string_view arguments{};  ///< that the name stands for: "stage=2 offload_optimizer=true"
  Version since{};
  Version until{99, 0, 0};  ///< the first without it
  std::string_view instead{};
  /// _check_strategy_and_fallback of 1.x: taken in its place on the CPU, or where a launcher has
  /// started the processes.
  std::string_view on_cpu{};
  std::string_view under_launcher{};
  bool scales_learning_rate = false;
};

constexpr StartMethod script = StartMethod::script;
constexpr StartMethod spawn = StartMethod::spawn;
constexpr StartMethod fork_method = StartMethod::fork;
constexpr std::string_view looks_for_unused = "find_unused_parameters=true";
constexpr std::string_view all_used = "find_unused_parameters=false";
// strategies/fully_sharded_native.py of 1.7 to 1.9 hands over None for backward_prefetch; the
// others are the defaults of torch up to 2.0.
constexpr std::string_view native_fsdp =
    "backward_prefetch=null use_orig_params=false limit_all_gathers=false"
    " gathers_optimizer_state=false";
constexpr std::string_view native_fsdp_offload =
    "backward_prefetch=null use_orig_params=false limit_all_gathers=false cpu_offload=true"
    " gathers_optimizer_state=false";

// Strategies that need FairScale, Horovod or Bagua left with 2.0; classes came with 1.6.
constexpr auto names = std::to_array<NameRow>({
    {"single_device", "single_device"},
    {.name = "SingleDeviceStrategy", .strategy = "single_device", .since = v1_6},
    {.name = "dp", .strategy = "dp", .until = v2_0, .instead = "ddp", .on_cpu = "ddp"},
    {.name = "DataParallelStrategy",
     .strategy = "dp",
     .since = v1_6,
     .until = v2_0,
     .instead = "DDPStrategy",
     .on_cpu = "ddp"},
    {"ddp", "ddp"},
    {"ddp_find_unused_parameters_false", "ddp", script, all_used},
    {"ddp_find_unused_parameters_true", "ddp", script, looks_for_unused, v2_0},
    {"DDPStrategy", "ddp", script, {}, v1_6},
    {.name = "ddp_spawn", .strategy = "ddp_spawn", .start = spawn, .under_launcher = "ddp"},
    {.name = "ddp_spawn_find_unused_parameters_false",
     .strategy = "ddp_spawn",
     .start = spawn,
     .arguments = all_used,
     .under_launcher = "ddp"},
    {"ddp_spawn_find_unused_parameters_true", "ddp_spawn", spawn, looks_for_unused, v2_0},
    {.name = "DDPSpawnStrategy",
     .strategy = "ddp_spawn",
     .start = spawn,
     .since = v1_6,
     .until = v2_0,
     .instead = "{DDPStrategy: {start_method: spawn}}",
     .under_launcher = "ddp"},
    {"ddp_fork", "ddp_fork", fork_method, {}, v1_7},
    {"ddp_fork_find_unused_parameters_false", "ddp_fork", fork_method, all_used, v1_7},
    {"ddp_fork_find_unused_parameters_true", "ddp_fork", fork_method, looks_for_unused, v2_0},
    {"ddp_notebook", "ddp_notebook", fork_method, {}, v1_7},
    {"ddp_notebook_find_unused_parameters_false", "ddp_notebook", fork_method, all_used, v1_7},
    {"ddp_notebook_find_unused_parameters_true", "ddp_notebook", fork_method, looks_for_unused,
     v2_0},
    {.name = "ddp2", .strategy = "ddp2", .until = v1_7, .instead = "ddp", .on_cpu = "ddp"},
    {.name = "DDP2Strategy",
     .strategy = "ddp2",
     .since = v1_6,
     .until = v1_7,
     .instead = "DDPStrategy",
     .on_cpu = "ddp"},
    {"ddp_sharded", "ddp_sharded", script, {}, {}, v2_0, "fsdp"},
    {"ddp_sharded_find_unused_parameters_false", "ddp_sharded", script, all_used, {}, v2_0, "fsdp"},
    {"DDPShardedStrategy", "ddp_sharded", script, {}, v1_6, v2_0, "FSDPStrategy"},
    {"ddp_sharded_spawn", "ddp_sharded_spawn", spawn, {}, {}, v2_0, "fsdp"},
    {"ddp_sharded_spawn_find_unused_parameters_false",
     "ddp_sharded_spawn",
     spawn,
     all_used,
     {},
     v2_0,
     "fsdp"},
    {"DDPSpawnShardedStrategy", "ddp_sharded_spawn", spawn, {}, v1_6, v2_0, "FSDPStrategy"},
    {"ddp_fully_sharded", "ddp_fully_sharded", script, {}, {}, v2_0, "fsdp"},
    {"DDPFullyShardedStrategy", "ddp_fully_sharded", script, {}, v1_6, v2_0, "FSDPStrategy"},
    {"fsdp_native", "fsdp_native", script, native_fsdp, v1_7, v2_0, "fsdp"},
    {"fsdp_native_full_shard_offload", "fsdp_native", script, native_fsdp_offload, v1_7, v2_0,
     "fsdp_cpu_offload"},
    {"DDPFullyShardedNativeStrategy", "fsdp_native", script, native_fsdp, v1_7, v2_0,
     "FSDPStrategy"},
    {"fsdp", "fsdp"},
    {"fsdp_cpu_offload", "fsdp", script, "cpu_offload=true", v2_0},
    {"FSDPStrategy", "fsdp", script, {}, v2_0, never, "DDPFullyShardedStrategy"},
    {"ModelParallelStrategy", "ModelParallelStrategy", script, {}, v2_3},
    {"deepspeed", "deepspeed", script, {}},
    {"deepspeed_stage_1", "deepspeed", script, "stage=1"},
    {"deepspeed_stage_1_offload", "deepspeed", script, "stage=1 offload_optimizer=true", v2_0},
    {"deepspeed_stage_2", "deepspeed", script, "stage=2"},
    {"deepspeed_stage_2_offload", "deepspeed", script, "stage=2 offload_optimizer=true"},
    {"deepspeed_stage_3", "deepspeed", script, "stage=3"},
    {"deepspeed_stage_3_offload", "deepspeed", script,
     "stage=3 offload_optimizer=true offload_parameters=true"},
    {"deepspeed_stage_3_offload_nvme", "deepspeed", script,
     "stage=3 offload_optimizer=true offload_parameters=true remote_device=nvme "
     "offload_params_device=nvme offload_optimizer_device=nvme"},
    {"DeepSpeedStrategy", "deepspeed", script, {}, v1_6},
    {.name = "horovod",
     .strategy = "horovod",
     .until = v2_0,
     .instead = "ddp",
     .scales_learning_rate = true},
    {.name = "HorovodStrategy",
     .strategy = "horovod",
     .since = v1_6,
     .until = v2_0,
     .instead = "DDPStrategy",
     .scales_learning_rate = true},
    {"bagua", "bagua", script, {}, v1_6, v2_0, "ddp"},
    {"BaguaStrategy", "bagua", script, {}, v1_6, v2_0, "DDPStrategy"},
});

const NameRow* row_of(std::string_view asked) {
  const auto* found = std::find_if(names.begin(), names.end(),
                                   [asked](const NameRow& row) { return row.name == asked; });
  return found == names.end() ? nullptr : found;
}

std::string text_of(const Version& version) {
  return fmt::format("{}.{}", version.major, version.minor);
}

StrategyArguments::Value value_of(std::string_view text) {
  if (text == "true" || text == "false") {
    return text == "true";
  }
  if (text == "null") {
    return std::monostate();
  }
  const bool is_number = std::all_of(text.begin(), text.end(),
                                     [](unsigned char each) { return std::isdigit(each) != 0; });
  return is_number ? StrategyArguments::Value(int64_t{std::stoll(std::string(text))})
                   : StrategyArguments::Value(std::string(text));
}

// "stage=2 offload_optimizer=true"
void add_arguments(std::string_view text, StrategyChoice& choice) {
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), pair.size() + 1));
    const size_t equals = pair.find('=');
    choice.arguments.emplace_back(pair.substr(0, equals), value_of(pair.substr(equals + 1)));
  }
}

StrategyChoice choice_of(const NameRow& row, const Version& lightning) {
  StrategyChoice choice;
  choice.name = row.strategy;
  choice.start = row.start;
  choice.scales_learning_rate = row.scales_learning_rate;
  choice.is_horovod = choice.name == "horovod";
  add_arguments(row.arguments, choice);
  // Before 2.0 `fsdp` was FairScale's.
  if (row.name == "fsdp" && lightning < v2_0) {
    choice.name = "ddp_fully_sharded";
  }
  if (lightning >= row.until) {
    choice.refusal = fmt::format("Lightning {} removed {}", text_of(row.until), row.name);
    choice.remedy = fmt::format("use {}, or an older `versions.lightning`", row.instead);
  } else if (lightning < row.since) {
    choice.refusal = fmt::format("{} came with Lightning {}", row.name, text_of(row.since));
    choice.remedy = row.instead.empty()
                        ? "use a newer `versions.lightning`"
                        : fmt::format("use {}, or a newer `versions.lightning`", row.instead);
  }
  return choice;
}

/// What Lightning takes where the script names nothing.
std::string_view automatic(const StrategySituation& situation) {
  const Version& lightning = situation.lightning;
  if (situation.horovodrun && lightning < v2_0) {
    return "horovod";
  }
  if (situation.nodes > 1) {
    return "ddp";
  }
  if (situation.devices <= 1) {
    return "single_device";
  }
  if (situation.interactive && lightning >= v1_7) {
    return "ddp_fork";
  }
  return lightning < v2_0 ? "ddp_spawn" : "ddp";
}

// _check_strategy_and_fallback of 1.6: another strategy is taken, and a line of the log says so.
void fall_back(const NameRow& row, const StrategySituation& situation, StrategyChoice& choice) {
  if (situation.lightning >= v2_0) {
    return;
  }
  if (situation.cpu && !row.on_cpu.empty()) {
    choice.warning =
        fmt::format("{} does not run on CPU: Lightning takes {} instead", choice.name, row.on_cpu);
    choice.name = row.on_cpu;
  }
  if (situation.started_externally && !row.under_launcher.empty()) {
    choice.warning =
        fmt::format("the launcher has started the processes: Lightning takes {}, not {}",
                    row.under_launcher, choice.name);
    choice.name = row.under_launcher;
    choice.start = script;
  }
}

void check_place(const StrategySituation& situation, const StrategyTraits& traits,
                 StrategyChoice& choice) {
  // _SpawnLauncher of 1.6 refused notebooks; before, processes were spawned from them.
  const bool spawns = choice.start == spawn && situation.lightning < v1_6;
  if (situation.interactive && !traits.is_one_process() && !spawns && choice.start != fork_method) {
    choice.refusal =
        fmt::format("{} is not compatible with an interactive environment", choice.name);
    choice.remedy = "use ddp_notebook, or run the code as a script";
  }
  if (traits.needs_gpu && situation.cpu) {
    choice.refusal = fmt::format("{} is selected, but GPU accelerator is not used", choice.name);
    choice.remedy = "use accelerator: gpu, or ddp";
  }
  if (traits.one_node && situation.nodes > 1) {
    choice.refusal = fmt::format("{} drives the devices of one node only", choice.name);
    choice.remedy = "use ddp";
  }
}

}  // namespace

StrategyChoice choose_strategy(std::string_view asked, const StrategySituation& situation,
                               const StrategyRegistry& registry) {
  const bool is_automatic = asked.empty() || asked == "auto";
  const NameRow* row = row_of(is_automatic ? automatic(situation) : asked);
  StrategyChoice choice;
  if (row == nullptr) {
    choice.name = asked;
  } else {
    choice = choice_of(*row, situation.lightning);
  }
  if (choice.refusal.empty()) {
    if (row != nullptr) {
      fall_back(*row, situation, choice);
    }
    check_place(situation, registry.traits_of(choice.name), choice);
  }
  return choice;
}

std::vector<std::string> strategies_to_compare() {
  return {"single_device",
          "dp",
          "ddp2",
          "ddp",
          "ddp_spawn",
          "horovod",
          "bagua",
          "ddp_sharded",
          "ddp_fully_sharded",
          "fsdp_native",
          "fsdp",
          "fsdp_cpu_offload",
          "ModelParallelStrategy",
          "deepspeed_stage_1",
          "deepspeed_stage_2",
          "deepspeed_stage_2_offload",
          "deepspeed_stage_3",
          "deepspeed_stage_3_offload",
          "PipelineStrategy",
          "ParameterServerStrategy"};
}

std::optional<NamedByAccelerator> strategy_of_accelerator(std::string_view accelerator) {
  if (accelerator == "ddp_cpu") {
    return NamedByAccelerator{"ddp_spawn", true};
  }
  const NameRow* row = row_of(accelerator);
  return row == nullptr ? std::nullopt : std::optional<NamedByAccelerator>({row->name, false});
}

bool start_by(const std::string& method, const StrategyRegistry& registry, StrategyChoice& choice) {
  if (method == "popen") {
    return choice.start == script;
  }
  // ddp_spawn and ddp_fork are registered with a method of their own, which the argument replaces.
  std::string of_script = choice.name;
  for (const std::string_view other : {"_spawn", "_fork"}) {
    if (of_script.ends_with(other)) {
      of_script.erase(of_script.size() - other.size());
    }
  }
  const std::string name = of_script + "_" + method;
  if ((method != "spawn" && method != "fork") || registry.find(name) == nullptr) {
    return false;
  }
  choice.name = name;
  choice.start = method == "spawn" ? StartMethod::spawn : StartMethod::fork;
  return true;
}

std::optional<Version> newest_with_strategy(std::string_view asked) {
  const NameRow* row = row_of(asked);
  if (row == nullptr || row->until == never) {
    return std::nullopt;
  }
  return row->until == v2_0 ? Version{1, 9, 5} : Version{1, 6, 5};
}

}  // namespace lockstep
