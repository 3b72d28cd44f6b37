// How many processes a trainer becomes, and the strategy that they run.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "model/strategy/exchange/first_weights.hpp"
#include "model/trainer/framework/lightning_versions.hpp"
#include "model/trainer/framework/strategy_versions.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"
#include "model/trainer/prepare/strategy_arguments.hpp"

namespace lockstep {

namespace {

using Kind = Problem::Kind;

// Of what makes and joins the processes of any strategy: read before the strategy is made.
bool is_read_before(const std::string& argument) {
  return argument == "process_group_backend" || argument == "start_method" || argument == "timeout";
}

// False where the version's class does not have it.
bool check_version(Preparation& preparation, const Object& strategy,
                   const ObjectArgument& argument) {
  const Version& lightning = preparation.placement.lightning;
  const ArgumentOfVersions* versions =
      versions_of_argument(class_of_today(strategy.name), argument.name);
  if (versions == nullptr || (lightning >= versions->since && lightning < versions->until)) {
    return true;
  }
  const bool is_too_old = lightning < versions->since;
  const Version& edge = is_too_old ? versions->since : versions->until;
  add_problem(preparation, Kind::refused, argument.place,
              fmt::format("TypeError: {} of Lightning {}.{} got an unexpected keyword argument "
                          "'{}', which {} {}.{}",
                          strategy.name, lightning.major, lightning.minor, argument.name,
                          is_too_old ? "came with" : "was removed in", edge.major, edge.minor),
              fmt::format("leave it out, or use {} `versions.lightning`",
                          is_too_old ? "a newer" : "an older"),
              refused_code);
  return false;
}

constexpr int64_t no_rank = -1;

// Not modelled, but with the value that it has in any case.
bool changes_nothing(const StrategyArgument& row, const PlainValue& value) {
  return value.is_null() || text_of(value) == row.default_text;
}

void set_arguments(Preparation& preparation, const Object& strategy, const StrategyEntry& entry,
                   StrategyArguments& arguments) {
  for (const ObjectArgument& argument : strategy.arguments) {
    if (!check_version(preparation, strategy, argument) || is_read_before(argument.name)) {
      continue;
    }
    const StrategyArgument* row = find_argument(
        entry.arguments_of(std::string(class_of_today(strategy.name))), argument.name);
    if (row != nullptr && row->use != ArgumentUse::unmodelled) {
      set_argument(argument.name, value_on_rank(argument.value, no_rank), arguments);
    } else if (row == nullptr || !changes_nothing(*row, argument.value)) {
      add_problem(preparation, Kind::unsupported, argument.place,
                  fmt::format("the argument `{}` of {} is not modelled yet", argument.name,
                              entry.class_name),
                  row == nullptr || row->meaning.empty()
                      ? ""
                      : fmt::format("leave it out ({})", row->meaning));
    }
  }
}

// Those of ranks that the script gives others. What else is said of arguments is said of the common
// ones.
void set_arguments_of_ranks(Preparation& preparation, const Object& strategy,
                            TrainingProgram& program) {
  std::vector<int64_t> ranks;
  for (const ObjectArgument& argument : strategy.arguments) {
    if (!add_named_ranks(argument.value, ranks)) {
      add_problem(preparation, Kind::invalid, argument.place,
                  fmt::format("`{}` does not say which ranks have which value", argument.name),
                  "write {on_ranks: [1], value: .., otherwise: ..}");
    }
  }
  for (const int64_t rank : ranks) {
    if (rank < 0 || rank >= preparation.options.world_size) {
      add_problem(preparation, Kind::invalid, strategy.place,
                  fmt::format("rank {} of `on_ranks` does not exist: there are {}", rank,
                              preparation.options.world_size));
      return;
    }
    StrategyArguments& own =
        program.arguments_of_ranks
            .try_emplace(static_cast<int32_t>(rank), program.strategy_arguments)
            .first->second;
    for (const ObjectArgument& argument : strategy.arguments) {
      std::vector<int64_t> named;
      add_named_ranks(argument.value, named);
      if (!named.empty()) {
        remove_argument(argument.name, own);
        set_argument(argument.name, value_on_rank(argument.value, rank), own);
      }
    }
  }
}

std::optional<double> number_of(const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc() && read.ptr == end ? std::optional<double>(number) : std::nullopt;
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

void set_variable(Preparation& preparation, const StrategyEntry& entry,
                  const EnvironmentVariable& variable, StrategyArguments& arguments) {
  const auto read = std::ranges::find(entry.variables, variable.name, &StrategyVariable::name);
  if (read == entry.variables.end()) {
    return;
  }
  const std::optional<double> number = number_of(variable.value);
  const bool is_whole = number && *number == std::floor(*number) && std::abs(*number) < 1e15;
  if (!number || *number < 0 || (read->unit == 0 && !is_whole)) {
    add_problem(preparation, Kind::invalid, variable.place,
                fmt::format("{} is not a number that {} can take", variable.value, variable.name),
                "write digits");
  } else if (read->unit == 0) {
    arguments.set(read->argument, static_cast<int64_t>(*number));
  } else {
    arguments.set(read->argument, *number / read->unit);
  }
}

// Those of the environment, which the strategy reads itself: the arguments of the scenario come
// after them. `deterministic` sets one of Horovod's until 2.0 (accelerator_connector.py).
void set_variables(Preparation& preparation, const StrategyEntry& entry,
                   StrategyArguments& arguments) {
  for (const EnvironmentVariable& variable : preparation.scenario->env) {
    set_variable(preparation, entry, variable, arguments);
  }
  const TrainerSpec& trainer = *preparation.scenario->trainer;
  if (preparation.placement.lightning < v2_0 && trainer.deterministic &&
      !is_zero(*trainer.deterministic)) {
    EnvironmentVariable none;
    none.name = "HOROVOD_FUSION_THRESHOLD";
    none.value = "0";
    none.place = trainer.deterministic->place;
    set_variable(preparation, entry, none, arguments);
  }
}

// bagua.distributed.launch --default_bucket_size, in bytes.
void set_launcher_arguments(const Preparation& preparation, const StrategyEntry& entry,
                            StrategyArguments& arguments) {
  const std::optional<Object>& launcher = preparation.scenario->launcher;
  const PlainValue* const given = launcher ? launcher->find("default_bucket_size") : nullptr;
  const int64_t* const bytes = given == nullptr ? nullptr : given->get_if<int64_t>();
  constexpr double mebibyte = 1024.0 * 1024.0;
  if (bytes != nullptr && *bytes > 0 &&
      std::ranges::find(entry.arguments, "bucket_size_mb", &StrategyArgument::name) !=
          entry.arguments.end()) {
    arguments.set("bucket_size_mb", static_cast<double>(*bytes) / mebibyte);
  }
}

void set_launch(Placement& placement, const StrategyTraits& traits) {
  Launch& launch = placement.launch;
  const bool one_in_node = traits.is_one_process() || traits.drives_all_devices();
  launch.nodes = traits.is_one_process() ? 1 : static_cast<int32_t>(placement.nodes);
  launch.processes_per_node = one_in_node ? 1 : static_cast<int32_t>(std::ssize(placement.devices));
  launch.start = placement.strategy.start;
  launch.gpus = !placement.cpu;
  launch.joins_torch = !traits.drives_xla;
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
  if (entry == nullptr && !placement.strategy.refusal.empty()) {
    return nullptr;
  }
  if (entry == nullptr) {
    add_problem(preparation, Kind::unsupported,
                trainer.strategy ? trainer.strategy->place : trainer.place,
                fmt::format("strategy `{}` is not supported yet", placement.strategy.name),
                fmt::format("supported: {}", names_of(registry)));
    return nullptr;
  }
  set_named_arguments(placement, program.strategy_arguments);
  set_variables(preparation, *entry, program.strategy_arguments);
  for (const StrategyVariable& variable : entry->variables) {
    placement.strategy_variables.push_back(variable.name);
  }
  set_launcher_arguments(preparation, *entry, program.strategy_arguments);
  if (trainer.strategy) {
    set_arguments(preparation, *trainer.strategy, *entry, program.strategy_arguments);
  }
  const Given<int64_t>& seed = preparation.scenario->seed;
  if (seed && seed->place.line > 0 && sends_no_first_weights(program.strategy_arguments)) {
    program.strategy_arguments.set(std::string(seeded_alike_argument), true);
  }
  RunOptions& options = preparation.options;
  options.ranks_per_node = placement.launch.processes_per_node;
  options.ranks_of_nodes = placement.launch.processes_of_nodes;
  options.world_size = placement.launch.world_size();
  options.devices_per_rank = entry->traits.drives_all_devices() ? static_cast<int32_t>(devices) : 1;
  if (trainer.strategy) {
    set_arguments_of_ranks(preparation, *trainer.strategy, program);
  }
  program.settings.on_gpus = !placement.cpu;
  program.settings.device = placement.device;
  program.settings.gpus = placement.numbers;
  program.settings.ranks_of_nodes = options.ranks_of_nodes;
  program.settings.visible_gpus = placement.visible;
  program.in_children = placement.launch.start != StartMethod::script;
  return entry;
}

}  // namespace lockstep
