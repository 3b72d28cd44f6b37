#pragma once

#include <optional>
#include <span>

#include "model/trainer/loop/training_program.hpp"
#include "model/trainer/prepare/prepare.hpp"

namespace lockstep {

// The steps of `prepare`, each in a file of its name. All add to the problems.

inline constexpr const char* refused_code = "LS501";
inline constexpr const char* ignored_code = "LS502";

void add_problem(Preparation& preparation, Problem::Kind kind, const SourcePlace& place,
                 const std::string& message, const std::string& remedy = "",
                 const std::string& code = "");

/// The version of a library that the scenario asks for, where it asks for one that can be read.
std::optional<Version> version_asked(const Scenario& scenario, std::string_view library);
/// The release of torch that the scenario asks for, else one of the time of its Lightning.
Version torch_used(const Scenario& scenario, const Version& lightning);

/// Prepares what bare programs and trainers share: backend, versions, seed, streams.
ProgramSettings prepare_common(Preparation& preparation);
/// Whether the statements are Horovod's: `process_group: {backend: horovod}`.
bool meets_by_name(const Scenario& scenario);
/// Variables of its engine, which a program without a trainer reads as well.
bool is_of_named_calls(std::string_view variable);
void read_named_calls(Preparation& preparation, NamedCallSettings& settings);
/// Null, false or 0.
bool is_zero(const PlainValue& value);
/// Statements that Horovod does not have, and names where nothing meets by them.
void check_names_of_calls(Preparation& preparation);
/// World size and program of a bare program.
void prepare_bare(Preparation& preparation, const ProgramSettings& settings,
                  const WorldAbilities& world);
/// Prepares a scenario with a trainer.
void prepare_training(Preparation& preparation, const ProgramSettings& settings,
                      const StrategyRegistry& registry, const WorldAbilities& world);
/// Names everything in the scenario that has no meaning here.
void find_unsupported(Preparation& preparation, const WorldAbilities& world);

/// Resolves a Trainer's arguments for its version: accelerator, devices, strategy, precision.
/// Writes what is decided into the scenario, so that defaults follow it.
void prepare_placement(Preparation& preparation, Scenario& scenario,
                       const StrategyRegistry& registry);
/// An optimizer or a scheduler of the strategy's own configuration becomes the scenario's; needs
/// the placement.
void take_configured_objects(Preparation& preparation, Scenario& scenario,
                             const StrategyRegistry& registry);
/// Backend and time limit of the process group, where strategy, environment or accelerator say it.
void prepare_process_group(Preparation& preparation, Scenario& scenario);
/// That of the scenario, else of the strategy's class or of torch; needs the backend.
Time time_limit_of_group(const Preparation& preparation);
/// That of torch, whatever init_process_group is given.
Time time_limit_of_new_groups(const Preparation& preparation);
/// A script that reads `num_nodes` from torchrun: as many as there are, up to the maximum.
void check_argument_versions(Preparation& preparation, const TrainerSpec& trainer);
void take_nodes_of_torchrun(Preparation& preparation, Scenario& scenario);
/// The GPUs of a node, and the argument of the Trainer that asks for some.
struct DevicesOfNode {
  std::span<const int64_t> visible;   ///< by number of CUDA, their places
  const PlainValue* asked = nullptr;  ///< null: nothing does
};
/// Horovod's processes are where the launcher puts them, not where the Trainer asks for them.
void take_processes_of_launcher(Preparation& preparation, const Scenario& scenario,
                                const DevicesOfNode& devices);
/// The processes of each host under horovodrun or mpirun. Nothing: of another launcher, or there
/// is a problem.
std::optional<RanksOfNodes> processes_on_hosts(Preparation& preparation, const Object& launcher);
/// Ranks of a program without a Trainer are where its launcher's hosts have room for them.
void take_hosts_of_bare_program(Preparation& preparation);
/// Places processes there, by the names of the launcher's hosts.
void set_hosts(const Object& launcher, const RanksOfNodes& processes, Launch& launch);
void name_hosts(const Object& launcher, Launch& launch);
/// Arguments of torchrun beside the number of processes; false where it would not start.
bool read_torchrun(Preparation& preparation, const Object& launcher);
/// Arguments of Bagua's launchers beside the number of processes.
void read_bagua_launcher(Preparation& preparation, const Object& launcher);
/// Who starts the processes, compared with those that the strategy has.
void prepare_launch(Preparation& preparation);
/// Holds the variables of `env` against the processes that there are; needs the launch.
void prepare_environment(Preparation& preparation);
/// The last version that calls every hook of the program; nothing where no version stopped to.
std::optional<Version> newest_with_hooks(const Scenario& scenario);
/// Combinations that the framework refuses or ignores, beyond devices, strategy and precision.
void check_combinations(Preparation& preparation);
/// What torch raises at set-up where no parameter can be trained; needs the modules.
void check_trainable(Preparation& preparation, const TrainingProgram& program);
/// `loss_in: training_step_end`.
bool asks_for_loss_of_whole_batch(const Scenario& scenario);
/// Such a loss needs a version with that hook. Several models and manual optimization are refused
/// under the strategies that have it, whatever computes the loss.
void check_loss_of_whole_batch(Preparation& preparation);
/// A loss that gathers samples of other ranks, where no ranks have others; needs the network.
void check_gathered_samples(Preparation& preparation, const TrainingProgram& program);
/// Says of clipping in the program that the strategy does not listen to it.
void check_ignored_clipping(Preparation& preparation, const StrategyEntry& entry);
/// Says that the Trainer's clipping gives way to that of the strategy's own configuration.
void note_configured_clipping(Preparation& preparation, const GradientClipping& of_trainer);
/// What torch raises where an object is made with these arguments.
void check_objects(Preparation& preparation);
/// Strategy, devices and world size. Null when the strategy is not known.
const StrategyEntry* prepare_devices(Preparation& preparation, const StrategyRegistry& registry,
                                     TrainingProgram& program);
/// Where ranks compute layers together, the program's network becomes what a rank has of it. False
/// where it cannot be cut, which is a problem.
bool cut_network(Preparation& preparation, const StrategyEntry& entry, TrainingProgram& program);
/// Else adds the reason, with `on` (a rank, or nothing) in front of it.
bool may_be_cut(Preparation& preparation, const CutNetwork& cut, const std::string& on);
/// Makes the strategy, to know it. False where it cannot take its arguments, which is a problem.
bool try_strategy(Preparation& preparation, const StrategyEntry& entry,
                  const TrainingProgram& program);
/// Null when the model cannot be built. `checkpointed`: StrategyEntry::checkpointed_classes.
std::shared_ptr<const Network> prepare_network(Preparation& preparation,
                                               const std::vector<std::string>& checkpointed);
/// Networks and plans of the ranks that `frozen_on` names; needs network and plan.
void prepare_frozen_on_ranks(Preparation& preparation, const std::vector<std::string>& checkpointed,
                             TrainingProgram& program);
/// The same of ranks that are given arguments of their own; needs network and plan.
void prepare_cut_on_ranks(Preparation& preparation, const StrategyEntry& entry,
                          TrainingProgram& program);
void prepare_plan(Preparation& preparation, TrainingProgram& program);
/// Which layers each optimizer holds, and whether the program says which one it means, and which
/// modules run; needs the network.
void prepare_modules(Preparation& preparation, TrainingProgram& program);
void prepare_trainer_settings(Preparation& preparation, TrainerSettings& settings);
/// Names the arguments of the Trainer that change nothing here, and those that are not modelled.
/// Their defaults ask for nothing.
void check_trainer_arguments(Preparation& preparation);
/// Whether `overfit_batches` is on.
bool overfits(const TrainerSpec& trainer);
/// Prepares `trainer.callbacks` and the ModelCheckpoint that Lightning adds; after schedulers.
void prepare_callbacks(Preparation& preparation, TrainingProgram& program);
void prepare_schedulers(Preparation& preparation, TrainingProgram& program);
void prepare_loaders(Preparation& preparation, TrainingProgram& program);
/// The samples that a loader's data set is given, checked against the model; null: none are.
std::shared_ptr<const GivenSamples> prepare_samples(Preparation& preparation,
                                                    const LoaderSpec& spec,
                                                    const LoaderSettings& settings,
                                                    const Network& network);
/// What repeats, as far as the scenario says, for the program and for what the output says of it;
/// needs all of the above, and which ranks run a trainer.
void take_repetition(Preparation& preparation, TrainingProgram& program);
/// Whether the operations of the training may depend on losses, outputs, or what was communicated:
/// a statement or callback looks at values. False is a proof, true is none.
bool values_decide(const TrainingProgram& program);
/// The same of a program's statements alone.
bool is_decided_by_values(const ProgramSpec& program);
/// Ranks that do the same whatever happens, where nothing depends on values and the scenario says
/// by what ranks differ; needs all of the above. Null: each may do something else.
std::shared_ptr<const RankClasses> classes_of_ranks(const Preparation& preparation,
                                                    const StrategyEntry& entry,
                                                    const TrainingProgram& program,
                                                    const WorldAbilities& world);
/// Whose samples each rank gets, where several get the same.
void note_data_parallel_indices(Preparation& preparation, const TrainingProgram& program);
std::shared_ptr<const RankClasses> classes_of_bare_ranks(const Preparation& preparation,
                                                         const WorldAbilities& world);
/// The definitions of `metrics`, and the places where they are computed; needs the log sites.
void prepare_metrics(Preparation& preparation, TrainingProgram& program);
/// Once devices are known.
void refuse_unsynchronised_metrics(Preparation& preparation);

}  // namespace lockstep
