#include <fmt/core.h>

#include <algorithm>

#include "model/strategy/replica_sites.hpp"
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

/// What carries values.
struct Numerics {
  bool here = false;       ///< by the scenario, in a world of reference arithmetic
  bool in_detail = false;  ///< the operations are those of a run with values
  bool carried = false;    ///< in this world
};

Numerics numerics_of(const Preparation& preparation, const TrainingProgram& program,
                     const WorldAbilities& world) {
  const std::optional<VerifySpec>& verify = preparation.scenario->verify;
  const std::string asked =
      verify ? value_or(verify->numerics, std::string("auto")) : std::string("auto");
  const Bytes parameters =
      Bytes(size_of(program.plan.parameter_dtype)) * program.network->parameter_elements();
  const bool wanted = asked == "true" || (asked == "auto" && parameters <= most_valued_parameters);
  const bool possible = wanted && program.plan.activation_dtype == program.plan.parameter_dtype;
  Numerics numerics;
  numerics.here = possible && program.network->has_reference_arithmetic();
  numerics.in_detail =
      numerics.here || (possible && (world.computes_layers || world.repeats_operations));
  numerics.carried = numerics.here || (possible && world.computes_layers);
  return numerics;
}

}  // namespace

void prepare_training(Preparation& preparation, const ProgramSettings& settings,
                      const StrategyRegistry& registry, const WorldAbilities& world) {
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
  const Numerics numerics = numerics_of(preparation, *program, world);
  program->plan.numerics = numerics.in_detail;
  program->plan.valueless = !numerics.carried;
  program->keeps_parameters = numerics.here;
  find_names_used(*program);
  for (const Site& site : entry->sites) {
    preparation.sites.add(site);
  }
  for (const std::string_view name : replica_sites::all) {
    Site site;
    site.description = name;
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
  options.numerics = numerics.carried;
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
