#include "model/trainer/framework/strategy_choice.hpp"
#include "model/trainer/framework/lightning_versions.hpp"
#include "model/trainer/framework/strategy_versions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace lockstep {

namespace {

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

std::string remedy_of(std::string_view instead, std::string_view other_version) {
  if (instead == "nothing") {
    return fmt::format("leave `strategy` out, or use {}", other_version);
  }
  return instead.empty() ? fmt::format("use {}", other_version)
                         : fmt::format("use {}, or {}", instead, other_version);
}

// Where the version has it not.
void refuse_by_version(const StrategyName& row, const Version& lightning, StrategyChoice& choice) {
  if (row.until == Version{}) {
    choice.refusal =
        fmt::format("no Trainer of Lightning has the strategy `{}`: {}", row.name, row.gone);
    choice.remedy = fmt::format("use {}", row.instead);
  } else if (lightning < row.since) {
    choice.refusal = fmt::format("{} came with Lightning {}", row.name, text_of(row.since));
    choice.remedy = remedy_of(row.instead, "a newer `versions.lightning`");
  } else if (lightning >= row.until) {
    choice.refusal = row.gone.empty()
                         ? fmt::format("Lightning {} removed {}", text_of(row.until), row.name)
                         : fmt::format("Lightning {} has no strategy `{}`: {}", text_of(lightning),
                                       row.name, row.gone);
    choice.remedy = remedy_of(row.used_to_be.empty() ? row.instead : row.used_to_be,
                              "an older `versions.lightning`");
  }
}

StrategyChoice choice_of(const StrategyName& row, const Version& lightning) {
  StrategyChoice choice;
  choice.name = row.strategy.empty() ? row.name : row.strategy;
  choice.start = row.start;
  choice.scales_learning_rate = row.scales_learning_rate;
  choice.is_horovod = choice.name == "horovod";
  // Before 2.0 `fsdp` was FairScale's.
  if (row.name == "fsdp" && lightning < v2_0) {
    choice.name = "ddp_fully_sharded";
  }
  for (const std::string_view argument : arguments_of_version(choice.name, lightning)) {
    add_arguments(argument, choice);
  }
  add_arguments(row.arguments, choice);
  return choice;
}

/// What Lightning takes where the script names nothing.
std::string_view automatic(const StrategySituation& situation) {
  const Version& lightning = situation.lightning;
  if (situation.horovodrun && lightning < v2_0) {
    return "horovod";
  }
  if (!situation.cpu && situation.device == DeviceType::tpu) {
    const bool is_alone = situation.devices <= 1;
    return lightning < v2_0 ? (is_alone ? "single_tpu" : "TPUSpawnStrategy")
                            : (is_alone ? "single_tpu" : "xla");
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
void fall_back(const StrategyName& row, const StrategySituation& situation,
               StrategyChoice& choice) {
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
    choice.start = StartMethod::script;
  }
}

// accelerator_connector.py, _lazy_init_strategy and _check_config_and_set_final_flags;
// strategies/xla.py, setup_distributed.
void check_device(const StrategySituation& situation, const StrategyEntry* entry,
                  StrategyChoice& choice) {
  const bool on_tpu = !situation.cpu && situation.device == DeviceType::tpu;
  const bool drives_xla = entry != nullptr && entry->traits.drives_xla;
  if (drives_xla && !on_tpu) {
    choice.refusal =
        fmt::format("{} needs a TPU: torch_xla finds no device of its own", entry->class_name);
    choice.remedy = "use ddp, or accelerator: tpu with a cluster of TPUs, such as tpu-v3-8";
  } else if (on_tpu && !drives_xla) {
    const bool is_xla = situation.lightning >= v2_1;
    choice.refusal = fmt::format("The `{}` can only be used with a `{}` or `{}`, found {}",
                                 is_xla ? "XLAAccelerator" : "TPUAccelerator",
                                 is_xla ? "SingleDeviceXLAStrategy" : "SingleTPUStrategy",
                                 situation.lightning >= v2_0 ? "XLAStrategy" : "TPUSpawnStrategy",
                                 entry == nullptr ? choice.name : entry->class_name);
    choice.remedy = "leave `strategy` out";
  } else if (drives_xla && situation.devices <= 1 && !entry->traits.is_one_process() &&
             situation.lightning >= v2_1) {
    choice.refusal =
        "The `XLAStrategy` does not support running on a single device with the PjRT runtime";
    choice.remedy = "use all devices, or leave `strategy` out";
  } else if (!situation.cpu && situation.device == DeviceType::mps && entry != nullptr &&
             entry->traits.layout != ProcessLayout::one_for_one_device) {
    choice.refusal = fmt::format(
        "You set `strategy={}` but strategies from the DDP family are not supported on the MPS "
        "accelerator",
        choice.name);
    choice.remedy = "use accelerator: cpu, or leave `strategy` out";
  }
}

// Whoever divides the layers of a model needs another way to do so: ddp has all of it on each
// device.
std::string instead_on_several_nodes(const StrategyEntry* entry) {
  const bool divides_layers =
      entry != nullptr && find_argument(entry->arguments, "split") != nullptr;
  return divides_layers
             ? "use PipelineStrategy, which has a process for each stage, also on other nodes; or "
               "num_nodes: 1"
             : "use ddp";
}

void check_place(const StrategySituation& situation, const StrategyRegistry& registry,
                 StrategyChoice& choice) {
  const StrategyTraits traits = registry.traits_of(choice.name);
  // _SpawnLauncher of 1.6 refused notebooks; before, processes were spawned from them.
  const bool spawns = choice.start == StartMethod::spawn && situation.lightning < v1_6;
  if (situation.interactive && !traits.is_one_process() && !spawns &&
      choice.start != StartMethod::fork) {
    choice.refusal =
        fmt::format("{} is not compatible with an interactive environment", choice.name);
    choice.remedy = "use ddp_notebook, or run the code as a script";
  }
  const bool has_cuda = !situation.cpu && situation.device == DeviceType::cuda;
  if (traits.needs_gpu && !has_cuda && choice.refusal.empty()) {
    choice.refusal = fmt::format("{} is selected, but GPU accelerator is not used", choice.name);
    choice.remedy = "use accelerator: gpu, or ddp";
  }
  if (traits.one_node && situation.nodes > 1) {
    choice.refusal = fmt::format("{} drives the devices of one node only, and num_nodes is {}",
                                 choice.name, situation.nodes);
    choice.remedy = instead_on_several_nodes(registry.find(choice.name));
  }
}

}  // namespace

StrategyChoice choose_strategy(std::string_view asked, const StrategySituation& situation,
                               const StrategyRegistry& registry) {
  const bool is_automatic = asked.empty() || asked == "auto";
  const StrategyName* row = find_strategy_name(is_automatic ? automatic(situation) : asked);
  StrategyChoice choice;
  if (row == nullptr) {
    choice.name = asked;
  } else {
    choice = choice_of(*row, situation.lightning);
    if (!is_automatic) {
      refuse_by_version(*row, situation.lightning, choice);
    }
    if (choice.refusal.empty() && !row->refusal.empty()) {
      choice.refusal = fmt::format("the strategy `{}` cannot run: {}", row->name, row->refusal);
      choice.remedy =
          row->instead == "nothing" ? "leave `strategy` out" : fmt::format("use {}", row->instead);
      choice.is_unmodelled = row->is_unmodelled;
    }
  }
  if (choice.refusal.empty()) {
    if (row != nullptr) {
      fall_back(*row, situation, choice);
    }
    check_device(situation, registry.find(choice.name), choice);
    check_place(situation, registry, choice);
  }
  return choice;
}

std::optional<NamedByAccelerator> strategy_of_accelerator(std::string_view accelerator,
                                                          const Version& lightning) {
  if (accelerator == "ddp_cpu") {
    return NamedByAccelerator{"ddp_spawn", true, true};
  }
  const StrategyName* row = find_strategy_name(accelerator);
  if (row == nullptr || row->until == Version{}) {
    return std::nullopt;
  }
  return NamedByAccelerator{row->name, false, row->is_type || lightning >= v1_6};
}

bool is_strategy_of_plugins(std::string_view plugin) {
  return find_strategy_name(plugin) != nullptr;
}

bool start_by(const std::string& method, const StrategyRegistry& registry, StrategyChoice& choice) {
  if (method == "popen") {
    return choice.start == StartMethod::script;
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
  const StrategyName* row = find_strategy_name(asked);
  constexpr auto last_releases =
      std::to_array<Version>({{2, 0, 9}, {1, 9, 5}, {1, 7, 7}, {1, 6, 5}, {1, 4, 9}});
  if (row == nullptr || row->until == never) {
    return std::nullopt;
  }
  for (const Version& release : last_releases) {
    if (release < row->until) {
      return release;
    }
  }
  return std::nullopt;
}

}  // namespace lockstep
