// How many processes a trainer becomes, and under which strategy.
#include <fmt/core.h>

#include <algorithm>

#include "model/cluster/presets.hpp"
#include "model/trainer/prepare_parts.hpp"

namespace lockstep {

namespace {

using Kind = Problem::Kind;

constexpr const char* ignored = "LS501";

struct Asked {
  const Scenario& scenario;
  const TrainerSpec& trainer;
  Version lightning;
  bool cpu = false;
  int64_t available = 1;  ///< GPUs of a node
};

int64_t devices_of_cluster(const Scenario& scenario) {
  const std::string name = scenario.cluster && scenario.cluster->preset
                               ? scenario.cluster->preset->value
                               : std::string("dgx-h100");
  const std::optional<Cluster> preset = cluster_preset(name);
  const int64_t devices = preset ? preset->node.devices : 8;
  return scenario.cluster ? value_or(scenario.cluster->gpus, devices) : devices;
}

// A text of `devices`: a count, or from a comma on a list of indices (device_parser.py).
std::optional<int64_t> count_in_text(const Asked& asked, const std::string& text) {
  if (text == "auto" || text == "-1") {
    return asked.cpu ? 1 : asked.available;
  }
  if (text.find(',') != std::string::npos) {
    int64_t count = 0;
    bool digits = false;
    for (const char letter : text + ",") {
      count += letter == ',' && digits ? 1 : 0;
      digits = letter == ',' ? false : digits || (letter >= '0' && letter <= '9');
    }
    return count;
  }
  const bool number = !text.empty() && text.size() < 7 &&
                      std::all_of(text.begin(), text.end(),
                                  [](char letter) { return letter >= '0' && letter <= '9'; });
  if (!number) {
    return std::nullopt;
  }
  return asked.lightning < Version{1, 5, 0} ? 1 : std::stoll(text);
}

std::optional<int64_t> count_devices(const Asked& asked, const PlainValue& value) {
  if (const int64_t* count = value.get_if<int64_t>()) {
    return *count == -1 ? asked.available : *count;
  }
  if (const std::string* text = value.get_if<std::string>()) {
    return count_in_text(asked, *text);
  }
  if (const PlainValue::List* list = value.get_if<PlainValue::List>()) {
    return asked.cpu ? std::nullopt : std::optional<int64_t>(list->size());
  }
  if (const PlainValue::Map* map = value.get_if<PlainValue::Map>()) {
    if (map->size() == 1 && map->front().key == "find_usable_cuda_devices") {
      const int64_t* count = map->front().value.get_if<int64_t>();
      return count == nullptr ? std::nullopt
                              : std::optional<int64_t>(*count == -1 ? asked.available : *count);
    }
  }
  return std::nullopt;
}

int64_t devices_in_node(Preparation& preparation, const Asked& asked) {
  const std::optional<PlainValue>& given =
      asked.trainer.devices ? asked.trainer.devices : asked.trainer.gpus;
  if (!given) {
    if (asked.cpu) {
      return value_or(asked.trainer.num_processes, int64_t{1});
    }
    return asked.lightning < Version{1, 6, 0} ? 1 : asked.available;
  }
  const std::optional<int64_t> count = count_devices(asked, *given);
  if (!count) {
    add_problem(preparation, Kind::invalid, given->place,
                fmt::format("`devices` cannot be {}", text_of(*given)));
    return 1;
  }
  if (*count < 1) {
    add_problem(preparation, Kind::invalid, given->place,
                fmt::format("training takes at least 1 device, not {}", *count),
                "write devices: 1, or -1 for all of the node");
    return 1;
  }
  if (!asked.cpu && *count > asked.available) {
    add_problem(preparation, Kind::refused, given->place,
                fmt::format("{} GPUs are asked for, and a node has {}", *count, asked.available),
                "ask for fewer, or set cluster.gpus", ignored);
  }
  return *count;
}

std::string strategy_name(const Asked& asked, int64_t devices, int64_t nodes,
                          StrategyArguments& arguments) {
  std::string name = asked.trainer.strategy ? asked.trainer.strategy->name : "auto";
  if (name == "auto") {
    const bool one = nodes == 1 && devices <= 1;
    const bool spawns = nodes == 1 && asked.lightning < Version{2, 0, 0};
    return one ? "single" : spawns ? "ddp_spawn" : "ddp";
  }
  for (const auto& [suffix, value] : {std::pair<std::string, bool>{"_true", true},
                                      std::pair<std::string, bool>{"_false", false}}) {
    if (name == "ddp_find_unused_parameters" + suffix) {
      arguments.set("find_unused_parameters", value);
      return "ddp";
    }
  }
  return name == "single_device" ? "single" : name;
}

void set_arguments(Preparation& preparation, const Object& strategy, const StrategyEntry& entry,
                   StrategyArguments& arguments) {
  for (const ObjectArgument& argument : strategy.arguments) {
    const bool known = std::find(entry.arguments.begin(), entry.arguments.end(), argument.name) !=
                       entry.arguments.end();
    if (!known) {
      add_problem(preparation, Kind::unsupported, argument.place,
                  fmt::format("the argument `{}` of {} is not modelled yet", argument.name,
                              entry.class_name));
      continue;
    }
    const PlainValue& value = argument.value;
    if (const bool* truth = value.get_if<bool>()) {
      arguments.set(argument.name, *truth);
    } else if (const int64_t* whole = value.get_if<int64_t>()) {
      arguments.set(argument.name, *whole);
    } else if (const double* number = value.get_if<double>()) {
      arguments.set(argument.name, *number);
    } else if (const std::string* text = value.get_if<std::string>()) {
      arguments.set(argument.name, *text);
    } else if (!value.is_null()) {
      add_problem(preparation, Kind::invalid, argument.place,
                  fmt::format("`{}` cannot be {}", argument.name, text_of(value)));
    }
  }
}

void check_combination(Preparation& preparation, const Asked& asked, const StrategyEntry& entry,
                       int64_t nodes) {
  const SourcePlace place =
      asked.trainer.strategy ? asked.trainer.strategy->place : asked.trainer.place;
  if (entry.name == "dp" && nodes > 1) {
    add_problem(preparation, Kind::refused, place, "dp drives the devices of one node only",
                "use ddp", ignored);
  }
  if (entry.name == "dp" && asked.lightning >= Version{2, 0, 0}) {
    add_problem(preparation, Kind::refused, place, "Lightning 2.0 removed dp",
                "use ddp, or versions: {lightning: \"1.9\"}", ignored);
  }
  const int64_t there =
      asked.scenario.cluster ? value_or(asked.scenario.cluster->nodes, nodes) : nodes;
  if (there < nodes) {
    add_problem(preparation, Kind::refused, asked.trainer.num_nodes->place,
                fmt::format("{} nodes are asked for, and the cluster has {}", nodes, there),
                "set cluster.nodes", ignored);
  }
}

Version lightning_of(const Scenario& scenario, const TrainerSpec& trainer) {
  for (const LibraryVersion& library : scenario.versions) {
    if (library.library == "lightning") {
      return version_of(library.version).value_or(Version{2, 6, 0});
    }
  }
  const bool dp = trainer.strategy && (trainer.strategy->name == "dp" ||
                                       trainer.strategy->name == "DataParallelStrategy");
  return dp ? Version{1, 9, 5} : Version{2, 6, 0};  // the newest that has what is asked
}

}  // namespace

const StrategyEntry* prepare_devices(Preparation& preparation, const StrategyRegistry& registry,
                                     TrainingProgram& program) {
  const Scenario& scenario = *preparation.scenario;
  const TrainerSpec trainer = scenario.trainer ? *scenario.trainer : TrainerSpec{};
  Asked asked{scenario, trainer, lightning_of(scenario, trainer)};
  program.trainer.lightning = asked.lightning;
  const std::string accelerator = value_or(trainer.accelerator, std::string("auto"));
  asked.cpu = accelerator == "cpu";
  if (!asked.cpu && accelerator != "gpu" && accelerator != "cuda" && accelerator != "auto") {
    add_problem(preparation, Kind::unsupported, trainer.accelerator->place,
                fmt::format("the accelerator `{}` is not modelled yet", accelerator),
                "use gpu or cpu");
  }
  asked.available = devices_of_cluster(scenario);
  const int64_t devices = devices_in_node(preparation, asked);
  const int64_t nodes = value_or(trainer.num_nodes, int64_t{1});
  const std::string name = strategy_name(asked, devices, nodes, program.strategy_arguments);
  const StrategyEntry* entry = registry.find(name);
  if (entry == nullptr) {
    add_problem(preparation, Kind::unsupported,
                trainer.strategy ? trainer.strategy->place : trainer.place,
                fmt::format("the strategy `{}` is not there yet", name));
    return nullptr;
  }
  if (trainer.strategy) {
    set_arguments(preparation, *trainer.strategy, *entry, program.strategy_arguments);
  }
  check_combination(preparation, asked, *entry, nodes);
  if (devices * nodes > maximum_ranks) {
    add_problem(preparation, Kind::invalid, trainer.place,
                fmt::format("{} processes are too many", devices * nodes));
    return nullptr;
  }
  RunOptions& options = preparation.options;
  options.world_size = entry->one_process ? 1 : static_cast<int32_t>(devices * nodes);
  options.ranks_per_node = entry->one_process ? 1 : static_cast<int32_t>(devices);
  options.devices_per_rank = entry->name == "dp" ? static_cast<int32_t>(devices) : 1;
  return entry;
}

}  // namespace lockstep
