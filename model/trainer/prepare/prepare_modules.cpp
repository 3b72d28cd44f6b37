// Several models that are trained together, and the optimizers that hold their parameters.
#include <fmt/core.h>

#include <algorithm>

#include "model/scenario/expressions_of.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"

namespace lockstep {

namespace {

using Kind = Problem::Kind;

std::string text_argument(const Object& object, std::string_view name) {
  const PlainValue* value = object.find(name);
  const auto* text = value == nullptr ? nullptr : value->get_if<std::string>();
  return text == nullptr ? std::string() : *text;
}

const NetworkModule* find_module(const Network& network, std::string_view name) {
  const auto found = std::find_if(network.modules.begin(), network.modules.end(),
                                  [&](const NetworkModule& module) { return module.name == name; });
  return found == network.modules.end() ? nullptr : &*found;
}

// Every parameter has one optimizer: the state of a second would need a place of its own.
void hold_layers(Preparation& preparation, TrainingProgram& program) {
  const std::vector<Object>& optimizers = preparation.scenario->optimizers;
  std::vector<OptimizerPlan>& plans = program.plan.optimizers;
  for (size_t i = 0; i < optimizers.size(); ++i) {
    program.optimizer_names.push_back(text_argument(optimizers[i], "name"));
    const std::string module_name = text_argument(optimizers[i], "module");
    if (const NetworkModule* module = find_module(*program.network, module_name)) {
      plans[i].first_layer = module->first_layer;
      plans[i].end_layer = module->end_layer;
    }
    for (size_t before = 0; before < i; ++before) {
      if (plans[before].holds(plans[i].first_layer) || plans[i].holds(plans[before].first_layer)) {
        add_problem(preparation, Kind::unsupported, optimizers[i].place,
                    "two optimizers of the same parameters are not modelled yet",
                    "give each a `module` of its own");
      }
    }
  }
}

// trainer/configuration_validator.py and optimizer.py: from 2.0 on several optimizers are stepped
// by hand; before, training_step was called once for each.
void check_optimizers(Preparation& preparation, const TrainingProgram& program) {
  const std::vector<Object>& optimizers = preparation.scenario->optimizers;
  if (optimizers.size() < 2 || !program.trainer.automatic_optimization) {
    return;
  }
  if (program.trainer.lightning >= Version{2, 0, 0}) {
    add_problem(preparation, Kind::refused, optimizers[1].place,
                "training with several optimizers is only supported with manual optimization",
                "set automatic_optimization: false and step them in training_step", refused_code);
  } else {
    add_problem(preparation, Kind::unsupported, optimizers[1].place,
                "a training_step for each of several optimizers is not modelled yet",
                "set automatic_optimization: false and step them in training_step");
  }
}

bool means_an_optimizer(StatementKind kind) {
  return kind == StatementKind::optimizer_step || kind == StatementKind::zero_grad ||
         kind == StatementKind::toggle_model || kind == StatementKind::clip_gradients;
}

void check_chain(Preparation& preparation, const Network& network,
                 const Placed<std::vector<std::string>>& names) {
  const NetworkModule* before = nullptr;
  for (const std::string& name : names.value) {
    const NetworkModule* module = find_module(network, name);
    if (module == nullptr) {
      return;
    }
    if (before != nullptr && module->first_layer < before->end_layer) {
      add_problem(preparation, Kind::unsupported, names.place,
                  fmt::format("`{}` behind `{}` is not modelled yet: modules run in the order in "
                              "which `modules` lists them",
                              name, before->name),
                  "list them in that order");
      return;
    }
    const Shape* output = before ? &network.layers[before->end_layer - 1].output : nullptr;
    if (output != nullptr && *output != module->input) {
      add_problem(preparation, Kind::invalid, names.place,
                  fmt::format("`{}` takes {} and `{}` gives {}", name, text_of(module->input),
                              before->name, text_of(*output)),
                  "make the output of the last layer match the input of the next module");
    }
    before = module;
  }
}

void check_forward(Preparation& preparation, const TrainingProgram& program,
                   const Statement& statement) {
  if (statement.modules) {
    check_chain(preparation, *program.network, *statement.modules);
  } else if (!program.network->modules.empty()) {
    add_problem(preparation, Kind::invalid, statement.place,
                "forward does not say which of `modules` runs", "write forward: {module: NAME}");
  }
}

void check_statements(Preparation& preparation, const TrainingProgram& program) {
  for_each_statement(*preparation.scenario->program, [&](const Statement& statement) {
    if (means_an_optimizer(statement.kind) && !statement.optimizer &&
        program.plan.optimizers.size() > 1) {
      add_problem(preparation, Kind::invalid, statement.place,
                  "there are several optimizers, and this does not say which one is meant",
                  "name it, with `name` in `optimizer`");
    }
    if (statement.kind == StatementKind::forward) {
      check_forward(preparation, program, statement);
    }
  });
}

bool has_forward(const Scenario& scenario, std::string_view hook_name) {
  const Hook* hook = scenario.program ? scenario.program->find(hook_name) : nullptr;
  bool found = false;
  if (hook != nullptr) {
    for_each_statement(hook->statements, [&](const Statement& statement) {
      found = found || statement.kind == StatementKind::forward;
    });
  }
  return found;
}

}  // namespace

void prepare_modules(Preparation& preparation, TrainingProgram& program) {
  const Scenario& scenario = *preparation.scenario;
  hold_layers(preparation, program);
  check_optimizers(preparation, program);
  if (scenario.program) {
    check_statements(preparation, program);
  }
  if (program.network->modules.empty()) {
    return;
  }
  if (!has_forward(scenario, "training_step")) {
    add_problem(preparation, Kind::invalid, scenario.model->place,
                "training_step runs none of `modules`",
                "write forward: {module: NAME} in training_step");
  }
  if (preparation.placement.traits.drives_all_devices()) {
    add_problem(
        preparation, Kind::unsupported, scenario.model->place,
        fmt::format("`modules` under {} are not modelled yet", preparation.placement.strategy.name),
        "use ddp");
  }
}

}  // namespace lockstep
