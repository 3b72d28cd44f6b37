#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "model/strategy/argument_table.hpp"

namespace lockstep {

/// The role of an object; each role has its own list of classes.
enum class ObjectRole {
  strategy,
  callback,
  optimizer,
  lr_scheduler,
  metric,
  loss,
  layer,
  launcher,
  logger,
  profiler,
  plugin
};

/// One class and its arguments in the order of its constructor, so that positional arguments get
/// their names. An argument is `name` (any value) or `name:type` with the types int, float, bool,
/// text, list, map, object, and `each`: all positional arguments are the list of its values;
/// `expression` is one, and `schedulers` a list of objects of that role. Those of a strategy that
/// is modelled stand in its entry.
struct ClassRow {
  std::string_view name;
  std::string_view arguments;
  ArgumentRows of_strategy{};
};

/// "strategy", "callback": for messages.
std::string_view name_of(ObjectRole role);
/// The classes of a role; strategies include the short names of Lightning's registry.
std::span<const ClassRow> classes(ObjectRole role);
const ClassRow* find_class(ObjectRole role, std::string_view name);

struct ArgumentRow {
  std::string_view name;
  std::string_view type;                          ///< empty: any
  const StrategyArgument* of_strategy = nullptr;  ///< what it means; null: its class says
};
std::vector<ArgumentRow> arguments_of(const ClassRow& row);

}  // namespace lockstep
