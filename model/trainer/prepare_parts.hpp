#pragma once

#include "model/trainer/prepare.hpp"
#include "model/trainer/training_program.hpp"

namespace lockstep {

// The steps of `prepare`, each in a file of its name. All add to the problems.

void add_problem(Preparation& preparation, Problem::Kind kind, const SourcePlace& place,
                 const std::string& message, const std::string& remedy = "",
                 const std::string& code = "");

/// What is common to bare programs and trainers: backend, versions, seed, streams.
ProgramSettings prepare_common(Preparation& preparation);
/// World size and program of a bare program.
void prepare_bare(Preparation& preparation, const ProgramSettings& settings);
/// The same of a trainer.
void prepare_training(Preparation& preparation, const ProgramSettings& settings,
                      const StrategyRegistry& registry, const WorldAbilities& world);
/// Names everything in the scenario that has no meaning here.
void find_unsupported(Preparation& preparation, const WorldAbilities& world);

/// Strategy, devices and world size. Null when the strategy is not known.
const StrategyEntry* prepare_devices(Preparation& preparation, const StrategyRegistry& registry,
                                     TrainingProgram& program);
/// Null when the model cannot be built.
std::shared_ptr<const Network> prepare_network(Preparation& preparation);
void prepare_plan(Preparation& preparation, TrainingProgram& program);
void prepare_trainer_settings(Preparation& preparation, TrainerSettings& settings);
void prepare_loaders(Preparation& preparation, TrainingProgram& program);

}  // namespace lockstep
