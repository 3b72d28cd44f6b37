// What the strategy's own configuration makes in place of the module's configure_optimizers.
#include <fmt/core.h>

#include <utility>

#include "model/trainer/prepare/prepare_parts.hpp"
#include "model/trainer/prepare/strategy_arguments.hpp"

namespace lockstep {

namespace {

using Kind = Problem::Kind;

Object object_from(const Object& strategy, const ConfiguredObject& configured) {
  Object object;
  object.name = configured.class_name;
  const PlainValue* section = find_argument_value(strategy, configured.argument);
  object.place = section == nullptr ? strategy.place : section->place;
  for (const auto& [name, argument] : configured.arguments) {
    if (const PlainValue* value = find_argument_value(strategy, argument)) {
      object.arguments.push_back({name, *value, value->place});
    }
  }
  for (const auto& [name, value] : configured.switches) {
    object.arguments.push_back({name, PlainValue{value, object.place}, object.place});
  }
  return object;
}

// A class whose arguments differ between ranks would need an optimizer for each.
bool differs_between_ranks(const Object& strategy, const ConfiguredObjects& configured) {
  const auto differs = [&strategy](const std::optional<ConfiguredObject>& object) {
    const PlainValue* const section =
        object ? find_argument_value(strategy, object->argument) : nullptr;
    std::vector<int64_t> ranks;
    return object && (section == nullptr || (add_named_ranks(*section, ranks), !ranks.empty()));
  };
  return differs(configured.optimizer) || differs(configured.scheduler);
}

// As the first rank reads them.
StrategyArguments arguments_of_first_rank(const Object& strategy) {
  StrategyArguments arguments;
  for (const ObjectArgument& argument : strategy.arguments) {
    set_argument(argument.name, value_on_rank(argument.value, 0), arguments);
  }
  return arguments;
}

void warn_not_called(Preparation& preparation, const SourcePlace& place, const std::string& what) {
  add_problem(preparation, Kind::warning, place,
              fmt::format("{} has no effect: the strategy's configuration has an `optimizer`, and "
                          "Lightning does not call configure_optimizers",
                          what),
              "keep one of them", ignored_code);
}

}  // namespace

void take_configured_objects(Preparation& preparation, Scenario& scenario,
                             const StrategyRegistry& registry) {
  const StrategyEntry* entry = registry.find(preparation.placement.strategy.name);
  if (entry == nullptr || !entry->configured_objects || !scenario.trainer->strategy) {
    return;
  }
  const Object& strategy = *scenario.trainer->strategy;
  const ConfiguredObjects configured = entry->configured_objects(arguments_of_first_rank(strategy));
  if (differs_between_ranks(strategy, configured)) {
    add_problem(preparation, Kind::unsupported, strategy.place,
                "an optimizer or a scheduler of the strategy's configuration that differs between "
                "ranks is not modelled",
                "write one value for all ranks");
    return;
  }
  if (configured.optimizer) {
    for (const auto& [objects, what] : {std::pair(&scenario.optimizers, "this optimizer"),
                                        std::pair(&scenario.schedulers, "this scheduler")}) {
      if (!objects->empty()) {
        warn_not_called(preparation, objects->front().place, what);
      }
    }
    scenario.optimizers = {object_from(strategy, *configured.optimizer)};
    scenario.schedulers.clear();
    if (scenario.program) {
      std::erase_if(scenario.program->hooks, [&](const Hook& hook) {
        const bool is_left_out = hook.name == "configure_optimizers";
        if (is_left_out) {
          warn_not_called(preparation, hook.place, "the hook");
        }
        return is_left_out;
      });
    }
    preparation.configured_optimizer = true;
  }
  if (!configured.scheduler) {
    return;
  }
  Object scheduler = object_from(strategy, *configured.scheduler);
  if (!scenario.schedulers.empty()) {
    add_problem(preparation, Kind::note, scheduler.place,
                "`scheduler` of the configuration has no effect: the engine takes that of "
                "configure_optimizers");
    return;
  }
  // LRSchedulerConfig(deepspeed_scheduler, interval="step")
  scheduler.arguments.push_back(
      {"interval", PlainValue{std::string("step"), scheduler.place}, scheduler.place});
  scheduler.arguments.push_back({"by_configuration", PlainValue{true, scheduler.place}, {}});
  scenario.schedulers = {std::move(scheduler)};
  preparation.configured_scheduler = true;
}

}  // namespace lockstep
