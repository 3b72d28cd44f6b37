#include "io/scenario/classes/catalogue.hpp"

#include "io/scenario/classes/catalogue_tables.hpp"

namespace lockstep {

std::string_view name_of(ObjectRole role) {
  switch (role) {
    case ObjectRole::strategy: return "strategy";
    case ObjectRole::callback: return "callback";
    case ObjectRole::optimizer: return "optimizer";
    case ObjectRole::lr_scheduler: return "lr_scheduler";
    case ObjectRole::metric: return "metric";
    case ObjectRole::loss: return "loss";
    case ObjectRole::layer: return "layer";
    case ObjectRole::launcher: return "launcher";
    case ObjectRole::logger: return "logger";
    case ObjectRole::profiler: return "profiler";
    case ObjectRole::plugin: return "plugin";
  }
  return "";
}

std::span<const ClassRow> classes(ObjectRole role) {
  switch (role) {
    case ObjectRole::strategy: return strategy_classes();
    case ObjectRole::callback: return callback_classes();
    case ObjectRole::optimizer: return optimizer_classes();
    case ObjectRole::lr_scheduler: return scheduler_classes();
    case ObjectRole::metric: return metric_classes();
    case ObjectRole::loss: return loss_classes();
    case ObjectRole::layer: return layer_classes();
    case ObjectRole::launcher: return launcher_classes();
    case ObjectRole::logger: return logger_classes();
    case ObjectRole::profiler: return profiler_classes();
    case ObjectRole::plugin: return plugin_classes();
  }
  return {};
}

const ClassRow* find_class(ObjectRole role, std::string_view name) {
  for (const ClassRow& row : classes(role)) {
    if (row.name == name) {
      return &row;
    }
  }
  return nullptr;
}

std::vector<ArgumentRow> arguments_of(const ClassRow& row) {
  std::vector<ArgumentRow> arguments;
  for (const StrategyArgument& argument : row.of_strategy) {
    if (argument.use != ArgumentUse::by_name) {
      arguments.push_back({argument.name, argument.type, &argument});
    }
  }
  if (!arguments.empty()) {
    return arguments;
  }
  std::string_view rest = row.arguments;
  while (!rest.empty()) {
    const size_t space = rest.find(' ');
    const std::string_view word = rest.substr(0, space);
    rest.remove_prefix(space == std::string_view::npos ? rest.size() : space + 1);
    if (word.empty()) {
      continue;  // the table joins words of several rows
    }
    const size_t colon = word.find(':');
    arguments.push_back({word.substr(0, colon),
                         colon == std::string_view::npos ? "" : word.substr(colon + 1), nullptr});
  }
  return arguments;
}

}  // namespace lockstep
