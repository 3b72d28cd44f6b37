// How many processes a trainer becomes, and the strategy that they run.
#include <fmt/core.h>

#include <algorithm>

#include "model/trainer/prepare/prepare_parts.hpp"
#include "model/trainer/prepare/strategy_arguments.hpp"

namespace lockstep {

namespace {

using Kind = Problem::Kind;

// Arguments that have been understood before the strategy is made.
bool is_read_before(const std::string& argument) {
  return argument == "process_group_backend" || argument == "start_method";
}

void set_arguments(Preparation& preparation, const Object& strategy, const StrategyEntry& entry,
                   StrategyArguments& arguments) {
  for (const ObjectArgument& argument : strategy.arguments) {
    if (is_read_before(argument.name)) {
      continue;
    }
    const bool known = std::find(entry.arguments.begin(), entry.arguments.end(), argument.name) !=
                       entry.arguments.end();
    if (!known) {
      add_problem(preparation, Kind::unsupported, argument.place,
                  fmt::format("the argument `{}` of {} is not modelled yet", argument.name,
                              entry.class_name));
      continue;
    }
    set_argument(argument.name, argument.value, arguments);
  }
}

// What the name stands for. Lightning's own default of find_unused_parameters was true until 2.0
// (strategies/ddp.py, pre_configure_ddp).
void set_named_arguments(const Placement& placement, StrategyArguments& arguments) {
  if (placement.traits.wraps_in_ddp && placement.lightning < Version{2, 0, 0}) {
    arguments.set("find_unused_parameters", true);
  }
  for (const auto& [name, value] : placement.strategy.arguments) {
    arguments.set(name, value);
  }
}

void set_launch(Placement& placement, const StrategyTraits& traits) {
  Launch& launch = placement.launch;
  const bool one_in_node = traits.is_one_process() || traits.drives_all_devices();
  launch.nodes = traits.is_one_process() ? 1 : static_cast<int32_t>(placement.nodes);
  launch.processes_per_node = one_in_node ? 1 : static_cast<int32_t>(std::ssize(placement.devices));
  launch.start = placement.strategy.start;
  launch.gpus = !placement.cpu;
}

std::string names_of(const StrategyRegistry& registry) {
  std::string names;
  for (const StrategyEntry& entry : registry.entries()) {
    names += (names.empty() ? "" : ", ") + entry.name;
  }
  return names;
}

}  // namespace

const StrategyEntry* prepare_devices(Preparation& preparation, const StrategyRegistry& registry,
                                     TrainingProgram& program) {
  const TrainerSpec& trainer = *preparation.scenario->trainer;
  Placement& placement = preparation.placement;
  program.trainer.lightning = program.settings.lightning = placement.lightning;
  const int64_t devices = std::ssize(placement.devices);
  if (devices * placement.nodes > maximum_ranks) {
    add_problem(preparation, Kind::invalid, trainer.place,
                fmt::format("{} processes are too many", devices * placement.nodes));
    return nullptr;
  }
  const StrategyEntry* entry = registry.find(placement.strategy.name);
  set_launch(placement, entry == nullptr ? StrategyTraits() : entry->traits);
  if (entry == nullptr) {
    add_problem(preparation, Kind::unsupported,
                trainer.strategy ? trainer.strategy->place : trainer.place,
                fmt::format("strategy `{}` is not supported yet", placement.strategy.name),
                fmt::format("supported: {}", names_of(registry)));
    return nullptr;
  }
  set_named_arguments(placement, program.strategy_arguments);
  if (trainer.strategy) {
    set_arguments(preparation, *trainer.strategy, *entry, program.strategy_arguments);
  }
  RunOptions& options = preparation.options;
  options.ranks_per_node = placement.launch.processes_per_node;
  options.world_size = placement.launch.nodes * placement.launch.processes_per_node;
  options.devices_per_rank = entry->traits.drives_all_devices() ? static_cast<int32_t>(devices) : 1;
  program.settings.on_gpus = !placement.cpu;
  program.settings.gpus = placement.numbers;
  program.settings.visible_gpus = placement.visible;
  program.in_children = placement.launch.start != StartMethod::script;
  return entry;
}

}  // namespace lockstep
