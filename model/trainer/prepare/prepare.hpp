#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/core/version.hpp"
#include "model/network/network.hpp"
#include "model/program/run.hpp"
#include "model/scenario/scenario.hpp"
#include "model/strategy/registry.hpp"
#include "model/trainer/checkpoint/checkpoint_store.hpp"
#include "model/trainer/logging/run_log.hpp"
#include "model/trainer/loop/repetition.hpp"
#include "model/trainer/prepare/placement.hpp"

namespace lockstep {

/// Why a scenario cannot run as it is written, or what in it changes nothing.
struct Problem {
  enum class Kind : uint8_t {
    invalid,      ///< contradicts itself or the framework (exit 3)
    refused,      ///< the framework refuses the combination; `code` says which (a finding)
    unsupported,  ///< Lockstep does not model it yet (exit 5)
    warning,      ///< it runs, as something else than what is asked for; `code` as in `refused`
    note,         ///< has no effect here
  };
  Kind kind = Kind::invalid;
  SourcePlace place{};
  std::string message;
  std::string remedy{};
  std::string code{};  ///< "LS501" of what is refused

  /// Whether nothing can run.
  bool stops() const { return kind != Kind::note && kind != Kind::warning; }
};

/// The versions of a library whose rules are modelled, by their minor release.
struct ModelledVersions {
  std::string_view library;
  Version oldest;
  Version newest;
};
std::span<const ModelledVersions> modelled_versions();

/// When a world computes parameters, gradients and losses by reference arithmetic.
enum class Arithmetic : uint8_t {
  always,            ///< where the scenario wants it and it takes no longer than a moment
  where_it_decides,  ///< only of a program that might do something else with other values
  never,             ///< its operations alone are wanted
};

/// Which of its launcher's attempts a run is, and what the ones before it left.
struct Attempt {
  int32_t number = 0;              ///< how many came before
  std::vector<int32_t> nodes{};    ///< of the cluster, by node rank; empty: of the first
  std::set<size_t> past_faults{};  ///< places in the scenario of those that have struck
  std::shared_ptr<const SavedTraining> saved{};  ///< the newest checkpoint `last`; null: none
  std::shared_ptr<CheckpointStore> store{};      ///< null: nothing outlives the run
};

/// What the target world supports; anything else in the scenario is reported as unsupported.
struct WorldAbilities {
  std::set<FaultKind> faults;  ///< kinds that the world injects
  bool calibration = false;
  bool topology_files = false;  ///< nccl_xml, nvidia_smi
  /// Its kernels compute layers of every kind, also those without reference arithmetic.
  bool computes_layers = false;
  /// The operations of a world that computes layers are repeated, for comparison; values are
  /// carried where the scenario and the reference arithmetic allow.
  bool repeats_operations = false;
  /// It runs on one device what is meant for so many ranks, for comparison.
  int32_t stands_for = 1;
  bool gathers_rows = false;      ///< there as StrategyTraits of those ranks
  bool joins_evaluation = false;  ///< there it evaluates each sample as often as those ranks do
  /// It clips so where the program asks for nothing else, as the strategy that it stands for does.
  std::optional<GradientClipping> clips_as{};
  LossScale::Others scales_for{};  ///< the devices that its GradScaler stands for
  bool scales_no_loss = false;     ///< as under the strategy that it stands for
  bool groups_experts = false;     ///< as the strategy does that it stands for
  /// It can run one rank for all that do the same.
  bool runs_classes = false;
  bool runs_columns = true;  ///< and then one column of neighbours for all that are alike
  Arithmetic arithmetic = Arithmetic::always;
  std::optional<KeptSteps> keeps_steps{};  ///< it leaves out none of these
  Attempt attempt{};
  /// Asked now and then while statements are executed, from the threads of all ranks: whether to
  /// give up. Null: never.
  std::shared_ptr<ValueBudget> value_budget{};  ///< what values count against
  std::function<bool()> stop_asked{};
};

/// How the scenario found and scales its learning rate.
struct LearningRate {
  bool told = false;  ///< it says something: then the rate is judged
  double base_rate = 0;
  std::optional<int64_t> base_batch_size;  ///< nothing: the batch of one device
  bool script_scales = false;
  bool framework_scales = false;
  SourcePlace place{};
};

/// A scenario made ready to run in any world.
struct Preparation {
  std::shared_ptr<const Scenario> scenario;  ///< with its defaults filled
  std::vector<std::string> assumptions;      ///< what the defaults assume, for `basis`
  RunOptions options;     ///< network, world size, numerics, average order, eager limit
  ProgramOfRank program;  ///< holds on to everything that it needs; empty when not runnable
  std::shared_ptr<const Network> network;  ///< null for a bare program
  TrainingPlan plan;
  /// Why parameters, gradients and losses carry no values in this world, of a training: names the
  /// layer or the limit. Empty: they do, or nobody wants them.
  std::string why_without_values;
  /// Of the fit, how much has values in a second or two, where all of it would take too long.
  std::optional<double> affordable_part{};
  Sites sites;
  std::map<uint8_t, std::string> stream_names;  ///< by queue, of streams that the scenario names
  std::shared_ptr<RunLog> log;                  ///< written by the run
  std::vector<Problem> problems;
  LearningRate learning_rate;
  GradientClipping gradient_clipping;  ///< of the strategy's own configuration, else the Trainer's
  std::optional<GradientClipping> configured_clipping;  ///< of the former, where it fixes it
  /// What the strategy's own configuration makes: the scenario has it in place of the program's.
  bool configured_optimizer = false;
  bool configured_scheduler = false;
  std::string strategy;  ///< its name in output, such as deepspeed_stage_2; empty: no trainer
  std::optional<PipelineBubble> ideal_bubble;
  std::vector<int32_t> pipeline_ranks;  ///< of the first pipeline; empty: there is none
  int64_t batch_size_multiple = 1;      ///< of TrainerMembership
  bool fixes_batch_size = false;        ///< of TrainerMembership
  int32_t data_parallel_size = 1;       ///< of TrainerMembership
  /// Of TrainerMembership, by rank; empty: the number of the rank.
  std::vector<int32_t> data_parallel_indices;
  bool groups_experts = false;      ///< of StrategyTraits: the model has grouped weights
  int64_t gradients_of_update = 1;  ///< trainers whose gradients make one update of the weights
  std::string registered_strategy;  ///< the name of its entry in the registry, such as deepspeed
  bool gloo = false;                ///< the backend of the process group, else NCCL
  Version lightning{};              ///< that is followed
  Placement placement{};            ///< of a trainer; of a bare program only its launch
  Time timeout{};                   ///< of the process group
  Time timeout_of_new_groups{};     ///< of groups that are given none
  Repetition repetition{};          ///< of a training
  /// Whether a training might do something else with other values.
  bool values_decide = false;

  bool runnable() const;
};

/// The release whose engine trains: that of the scenario, or the newest that the Lightning came
/// with.
Version deepspeed_release(const Scenario& scenario, const Version& lightning);

/// Understands a scenario. Nothing in it is ignored in silence: what has no meaning here is a
/// problem with its place.
Preparation prepare(const Scenario& scenario, const StrategyRegistry& registry,
                    const WorldAbilities& world = {});

}  // namespace lockstep
