#include "model/trainer/prepare/strategy_behind.hpp"

#include <fmt/format.h>

#include "model/scenario/defaults.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"
#include "model/trainer/prepare/strategy_arguments.hpp"

namespace lockstep {

namespace {

void refuse_behind(Preparation& preparation, const Object& given, const ArgumentProblem& error) {
  const PlainValue* value = find_argument_value(given, error.argument());
  const bool is_unmodelled = dynamic_cast<const UnmodelledArgument*>(&error) != nullptr;
  const bool is_refused = dynamic_cast<const RefusedArgument*>(&error) != nullptr;
  add_problem(preparation,
              is_unmodelled ? Problem::Kind::unsupported
              : is_refused  ? Problem::Kind::refused
                            : Problem::Kind::invalid,
              value == nullptr ? given.place : value->place, error.what(), error.remedy(),
              is_refused ? refused_code : "");
}

void refuse_unmodelled(Preparation& preparation, const Object& given, const StrategyEntry& entry) {
  for (const ObjectArgument& argument : given.arguments) {
    const StrategyArgument* row = find_argument(entry.arguments, argument.name);
    const bool is_default = row != nullptr && (argument.value.is_null() ||
                                               text_of(argument.value) == row->default_text);
    if (row != nullptr && row->use == ArgumentUse::unmodelled && !is_default) {
      add_problem(preparation, Problem::Kind::unsupported, argument.place,
                  fmt::format("the argument `{}` of {} is not modelled yet", argument.name,
                              entry.class_name));
    }
  }
}

}  // namespace

std::string replace_by_strategy_behind(Preparation& preparation, Scenario& scenario,
                                       const StrategyRegistry& registry, const std::string& named,
                                       int64_t ranks) {
  const StrategyEntry* known = scenario.trainer->strategy ? registry.find(named) : nullptr;
  if (known == nullptr || !known->behind) {
    return named;
  }
  const StrategyEntry& entry = *known;
  const Object given = *scenario.trainer->strategy;
  refuse_unmodelled(preparation, given, entry);
  RanksAndBatch size{ranks};
  if (scenario.data && !scenario.data->train.empty()) {
    size.batch_size = value_or(scenario.data->train.front().batch_size, size.batch_size);
  }
  try {
    const StrategyBehind behind = entry.behind(strategy_arguments_of(given), size);
    scenario.trainer->strategy = object_of(behind.class_name, behind.arguments, given.place);
    add_problem(preparation, Problem::Kind::note, given.place,
                fmt::format("{} on {} ranks comes to {}", given.name, ranks,
                            text_with(*scenario.trainer->strategy, {})));
    return behind.class_name;
  } catch (const ArgumentProblem& error) {
    refuse_behind(preparation, given, error);
    scenario.trainer->strategy.reset();
    return "";
  }
}

}  // namespace lockstep
