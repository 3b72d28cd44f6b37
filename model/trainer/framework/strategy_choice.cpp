#include "model/trainer/framework/strategy_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace lockstep {

namespace {

enum class Unused : uint8_t { unsaid, yes, no };

struct NameRow {
  std::string_view name;
  std::string_view strategy;
  StartMethod start = StartMethod::script;
  Unused unused = Unused::unsaid;
  Version since{};
  Version until{99, 0, 0};  ///< the first without it
  std::string_view instead{};
};

constexpr Version v1_6{1, 6, 0};
constexpr Version v1_7{1, 7, 0};
constexpr Version v2_0{2, 0, 0};
constexpr Version v2_3{2, 3, 0};
constexpr Version never{99, 0, 0};
constexpr StartMethod script = StartMethod::script;
constexpr StartMethod spawn = StartMethod::spawn;
constexpr StartMethod fork_method = StartMethod::fork;
constexpr Unused unsaid = Unused::unsaid;

// Strategies that need FairScale, Horovod or Bagua left with 2.0; classes came with 1.6.
constexpr auto names = std::to_array<NameRow>({
    {"single_device", "single"},
    {"SingleDeviceStrategy", "single", script, unsaid, v1_6},
    {"dp", "dp", script, unsaid, {}, v2_0, "ddp"},
    {"DataParallelStrategy", "dp", script, unsaid, v1_6, v2_0, "DDPStrategy"},
    {"ddp", "ddp"},
    {"ddp_find_unused_parameters_false", "ddp", script, Unused::no},
    {"ddp_find_unused_parameters_true", "ddp", script, Unused::yes, v2_0},
    {"DDPStrategy", "ddp", script, unsaid, v1_6},
    {"ddp_spawn", "ddp_spawn", spawn},
    {"ddp_spawn_find_unused_parameters_false", "ddp_spawn", spawn, Unused::no},
    {"ddp_spawn_find_unused_parameters_true", "ddp_spawn", spawn, Unused::yes, v2_0},
    {"DDPSpawnStrategy", "ddp_spawn", spawn, unsaid, v1_6, v2_0,
     "{DDPStrategy: {start_method: spawn}}"},
    {"ddp_fork", "ddp_fork", fork_method, unsaid, v1_7},
    {"ddp_fork_find_unused_parameters_false", "ddp_fork", fork_method, Unused::no, v1_7},
    {"ddp_fork_find_unused_parameters_true", "ddp_fork", fork_method, Unused::yes, v2_0},
    {"ddp_notebook", "ddp_notebook", fork_method, unsaid, v1_7},
    {"ddp_notebook_find_unused_parameters_false", "ddp_notebook", fork_method, Unused::no, v1_7},
    {"ddp_notebook_find_unused_parameters_true", "ddp_notebook", fork_method, Unused::yes, v2_0},
    {"ddp2", "ddp2", script, unsaid, {}, v1_7, "ddp"},
    {"DDP2Strategy", "ddp2", script, unsaid, v1_6, v1_7, "DDPStrategy"},
    {"ddp_sharded", "ddp_sharded", script, unsaid, {}, v2_0, "fsdp"},
    {"ddp_sharded_find_unused_parameters_false",
     "ddp_sharded",
     script,
     Unused::no,
     {},
     v2_0,
     "fsdp"},
    {"DDPShardedStrategy", "ddp_sharded", script, unsaid, v1_6, v2_0, "FSDPStrategy"},
    {"ddp_sharded_spawn", "ddp_sharded_spawn", spawn, unsaid, {}, v2_0, "fsdp"},
    {"ddp_sharded_spawn_find_unused_parameters_false",
     "ddp_sharded_spawn",
     spawn,
     Unused::no,
     {},
     v2_0,
     "fsdp"},
    {"DDPSpawnShardedStrategy", "ddp_sharded_spawn", spawn, unsaid, v1_6, v2_0, "FSDPStrategy"},
    {"ddp_fully_sharded", "ddp_fully_sharded", script, unsaid, {}, v2_0, "fsdp"},
    {"DDPFullyShardedStrategy", "ddp_fully_sharded", script, unsaid, v1_6, v2_0, "FSDPStrategy"},
    {"fsdp_native", "fsdp", script, unsaid, v1_7, v2_0, "fsdp"},
    {"fsdp_native_full_shard_offload", "fsdp_cpu_offload", script, unsaid, v1_7, v2_0,
     "fsdp_cpu_offload"},
    {"DDPFullyShardedNativeStrategy", "fsdp", script, unsaid, v1_7, v2_0, "FSDPStrategy"},
    {"fsdp", "fsdp"},
    {"fsdp_cpu_offload", "fsdp_cpu_offload", script, unsaid, v2_0},
    {"FSDPStrategy", "fsdp", script, unsaid, v2_0, never, "DDPFullyShardedStrategy"},
    {"ModelParallelStrategy", "ModelParallelStrategy", script, unsaid, v2_3},
    {"horovod", "horovod", script, unsaid, {}, v2_0, "ddp"},
    {"HorovodStrategy", "horovod", script, unsaid, v1_6, v2_0, "DDPStrategy"},
    {"bagua", "bagua", script, unsaid, v1_6, v2_0, "ddp"},
    {"BaguaStrategy", "bagua", script, unsaid, v1_6, v2_0, "DDPStrategy"},
});

const NameRow* row_of(std::string_view asked) {
  const auto* found = std::find_if(names.begin(), names.end(),
                                   [asked](const NameRow& row) { return row.name == asked; });
  return found == names.end() ? nullptr : found;
}

std::string text_of(const Version& version) {
  return fmt::format("{}.{}", version.major, version.minor);
}

StrategyChoice choice_of(const NameRow& row, const Version& lightning) {
  StrategyChoice choice;
  choice.name = row.strategy;
  choice.start = row.start;
  if (row.unused != Unused::unsaid) {
    choice.find_unused_parameters = row.unused == Unused::yes;
  }
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

StrategyChoice automatic(const StrategySituation& situation) {
  const Version& lightning = situation.lightning;
  if (situation.horovodrun && lightning < v2_0) {
    return {.name = "horovod"};
  }
  if (situation.nodes > 1) {
    return {.name = "ddp"};
  }
  if (situation.devices <= 1) {
    return {.name = "single"};
  }
  if (situation.interactive && lightning >= v1_7) {
    return {.name = "ddp_fork", .start = fork_method};
  }
  return lightning < v2_0 ? StrategyChoice{.name = "ddp_spawn", .start = spawn}
                          : StrategyChoice{.name = "ddp"};
}

// _check_strategy_and_fallback of 1.6: another strategy is taken, and a line of the log says so.
void fall_back(const StrategySituation& situation, StrategyChoice& choice) {
  const Version& lightning = situation.lightning;
  if (situation.cpu && lightning < v2_0 && (choice.name == "dp" || choice.name == "ddp2")) {
    choice.warning =
        fmt::format("{} does not run on CPU: Lightning takes ddp instead", choice.name);
    choice.name = "ddp";
  }
  if (situation.started_externally && lightning < v2_0 && choice.name == "ddp_spawn") {
    choice.warning = "the launcher has started the processes: Lightning takes ddp, not ddp_spawn";
    choice.name = "ddp";
    choice.start = script;
  }
}

void check_place(const StrategySituation& situation, StrategyChoice& choice) {
  const bool one_process = choice.name == "single" || choice.name == "dp";
  // _SpawnLauncher of 1.6 refused notebooks; before, processes were spawned from them.
  const bool spawns = choice.start == spawn && situation.lightning < v1_6;
  if (situation.interactive && !one_process && !spawns && choice.start != fork_method) {
    choice.refusal =
        fmt::format("{} is not compatible with an interactive environment", choice.name);
    choice.remedy = "use ddp_notebook, or run the code as a script";
  }
  if (choice.name.starts_with("fsdp") && situation.cpu) {
    choice.refusal = "fsdp is selected, but GPU accelerator is not used";
    choice.remedy = "use accelerator: gpu, or ddp";
  }
  if (choice.name == "dp" && situation.nodes > 1) {
    choice.refusal = "dp drives the devices of one node only";
    choice.remedy = "use ddp";
  }
}

}  // namespace

StrategyChoice choose_strategy(std::string_view asked, const StrategySituation& situation) {
  StrategyChoice choice;
  if (asked.empty() || asked == "auto") {
    choice = automatic(situation);
  } else if (const NameRow* row = row_of(asked)) {
    choice = choice_of(*row, situation.lightning);
  } else {
    choice.name = asked;
  }
  if (choice.refusal.empty()) {
    fall_back(situation, choice);
    check_place(situation, choice);
  }
  return choice;
}

std::optional<Version> newest_with_strategy(std::string_view asked) {
  const NameRow* row = row_of(asked);
  if (row == nullptr || row->until == never) {
    return std::nullopt;
  }
  return row->until == v2_0 ? Version{1, 9, 5} : Version{1, 6, 5};
}

bool is_ddp(std::string_view name) {
  return name == "ddp" || name == "ddp_spawn" || name == "ddp_fork" || name == "ddp_notebook";
}

}  // namespace lockstep
