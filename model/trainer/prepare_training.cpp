#include <fmt/core.h>

#include <algorithm>

#include "model/trainer/expressions_of.hpp"
#include "model/trainer/prepare_parts.hpp"
#include "model/trainer/sites.hpp"

namespace lockstep {

namespace {

using Kind = Problem::Kind;

constexpr Bytes most_valued_parameters{int64_t{64} << 20};

void find_names_used(TrainingProgram& program) {
  if (!program.scenario->program) {
    return;
  }
  for_each_statement(*program.scenario->program, [&](const Statement& statement) {
    for_each_expression(statement, [&](const Expression& expression) {
      for (const std::string& name : expression.names()) {
        program.uses_output |= name == "output" || name == "outputs";
        program.uses_loss |= name == "loss" || name == "outputs";
      }
    });
  });
}

bool carries_values(const Preparation& preparation, const TrainingProgram& program) {
  const std::optional<VerifySpec>& verify = preparation.scenario->verify;
  const std::string asked =
      verify ? value_or(verify->numerics, std::string("auto")) : std::string("auto");
  const bool possible = program.network->has_reference_arithmetic() &&
                        program.plan.activation_dtype == program.plan.parameter_dtype;
  const Bytes parameters =
      Bytes(size_of(program.plan.parameter_dtype)) * program.network->parameter_elements();
  return possible && asked != "false" && (asked == "true" || parameters <= most_valued_parameters);
}

}  // namespace

void prepare_training(Preparation& preparation, const ProgramSettings& settings,
                      const StrategyRegistry& registry) {
  auto program = std::make_shared<TrainingProgram>();
  program->scenario = preparation.scenario;
  program->settings = settings;
  for (const Stage stage : {Stage::fit, Stage::validate, Stage::test, Stage::predict}) {
    program->sites[static_cast<size_t>(stage)] = add_trainer_sites(preparation.sites, stage);
  }
  if (preparation.scenario->program) {
    program->log_sites = add_log_sites(*preparation.scenario->program, preparation.sites);
  }
  const StrategyEntry* entry = prepare_devices(preparation, registry, *program);
  program->network = prepare_network(preparation);
  prepare_trainer_settings(preparation, program->trainer);
  if (preparation.scenario->program) {
    program->trainer.automatic_optimization =
        value_or(preparation.scenario->program->automatic_optimization, true);
  }
  prepare_plan(preparation, *program);
  if (entry == nullptr || !program->network) {
    return;
  }
  prepare_loaders(preparation, *program);
  program->plan.network = program->network.get();
  program->plan.numerics = carries_values(preparation, *program);
  find_names_used(*program);
  for (const Site& site : entry->sites) {
    preparation.sites.add(site);
  }
  program->make_strategy = entry->make;
  try {
    entry->make(program->plan, program->strategy_arguments);
  } catch (const std::invalid_argument& error) {
    add_problem(preparation, Kind::invalid, preparation.scenario->trainer->strategy->place,
                error.what());
    return;
  }
  RunOptions& options = preparation.options;
  options.numerics = program->plan.numerics;
  options.network = program->network.get();
  preparation.network = program->network;
  preparation.plan = program->plan;
  preparation.strategy = entry->name;
  preparation.lightning = program->trainer.lightning;
  preparation.log = std::make_shared<RunLog>(options.world_size);
  program->log = preparation.log;
  preparation.program = training_program(program);
}

}  // namespace lockstep
