#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/core/site.hpp"
#include "model/core/version.hpp"
#include "model/network/tensor_parallel/cut_network.hpp"
#include "model/strategy/argument_table.hpp"
#include "model/strategy/arguments.hpp"
#include "model/strategy/pipeline_bubble.hpp"
#include "model/strategy/strategy.hpp"
#include "model/strategy/torch_feature.hpp"
#include "model/strategy/trainer_limits.hpp"
#include "model/strategy/trainer_membership.hpp"
#include "model/strategy/traits.hpp"

namespace lockstep {

/// Makes the strategy object of one rank. Throws ArgumentProblem for arguments it cannot take.
using StrategyFactory = std::function<std::unique_ptr<Strategy>(
    const TrainingPlan& plan, const StrategyArguments& arguments)>;

/// A way to write `strategy` so that ranks divide the model's state, or offload it.
struct DividedState {
  std::string name;        ///< as Lightning takes it, or of the class
  std::string argument{};  ///< of the class; empty: none
  std::string value{};
  bool offloads = false;
  /// Of the class: they do the same with every optimizer, where `takes_offloaded` limits `name`.
  StrategyArguments with_any_optimizer{};

  /// As a scenario has it.
  std::string text() const {
    return argument.empty() ? name : "{" + name + ": {" + argument + ": " + value + "}}";
  }
};

/// Arguments of a strategy for a number of ranks, as a scenario writes their values.
struct ArgumentsOfSize {
  std::vector<std::pair<std::string, std::string>> values;  ///< those that change
  std::string why_not{};                                    ///< empty: they can
};

/// An optimizer or a scheduler that a strategy's own configuration makes, by the names of a
/// scenario.
struct ConfiguredObject {
  std::string argument;    ///< of the strategy: "config.optimizer"
  std::string class_name;  ///< "FusedAdam"
  /// Its arguments, each with that of the strategy that gives the value.
  std::vector<std::pair<std::string, std::string>> arguments{};
  std::vector<std::pair<std::string, bool>> switches{};  ///< further ones, which are implied
};
struct ConfiguredObjects {
  std::optional<ConfiguredObject> optimizer{};
  std::optional<ConfiguredObject> scheduler{};
};

/// A class of Lightning that makes a strategy with arguments, or defaults, of its own.
struct ClassOfStrategy {
  std::string name;
  std::vector<StrategyArgument> arguments;
};

/// A variable of the environment that gives an argument, where the scenario does not.
struct StrategyVariable {
  std::string name;      ///< "HOROVOD_FUSION_THRESHOLD"
  std::string argument;  ///< "fusion_threshold_mb"
  double unit = 1;  ///< of the argument, in that of the variable; 0: the argument is an integer
};

/// What a configuration of another framework comes to.
struct StrategyBehind {
  std::string class_name;  ///< or the name
  StrategyArguments arguments;
};
struct RanksAndBatch {
  int64_t ranks = 1;
  int64_t batch_size = 1;  ///< of a data-parallel rank
};

struct StrategyEntry {
  std::string name;        ///< "ddp"
  std::string class_name;  ///< "DDPStrategy"
  StrategyTraits traits;
  /// Of the class, in the order in which positional ones get their names.
  std::vector<StrategyArgument> arguments;
  std::vector<Site> sites;  ///< what its operations are called in findings
  StrategyFactory make;
  /// Classes of modules whose forward it runs again in the backward; `blocks` alone: what repeats.
  /// Does not throw: `make` refuses what cannot be. Null: it has no such argument.
  std::function<std::vector<std::string>(const StrategyArguments& arguments)>
      checkpointed_classes{};
  /// Arguments that are given and change nothing, each with a sentence that says why. Null: none.
  std::function<std::vector<std::pair<std::string, std::string>>(
      const TrainingPlan& plan, const StrategyArguments& arguments)>
      without_effect{};
  /// Whether its optimizer is given parts of tensors, or several that have become one, as if they
  /// were tensors. Null: no.
  std::function<bool(const TrainingPlan& plan, const StrategyArguments& arguments)> gives_parts{};
  /// What is made in place of, or beside, what the module's configure_optimizers returns: not
  /// called at all where there is an optimizer. Does not throw: `make` refuses what cannot be.
  /// Null: nothing.
  std::function<ConfiguredObjects(const StrategyArguments& arguments)> configured_objects{};
  /// Null: its arguments limit nothing.
  std::function<TrainerLimits(const StrategyArguments& arguments)> trainer_limits{};
  /// What its arguments become with a different number of ranks. Null: they do not depend on it.
  std::function<ArgumentsOfSize(const StrategyArguments& arguments, int64_t ranks)> of_size{};
  std::vector<StrategyVariable> variables{};
  /// The strategy that takes its place in a scenario before anything else is read. Throws
  /// ArgumentProblem. Null: it is one itself.
  std::function<StrategyBehind(const StrategyArguments& arguments, const RanksAndBatch& size)>
      behind{};
  /// Further sites, which depend on what is trained. Null: none.
  std::function<std::vector<Site>(const TrainingPlan& plan)> sites_of_plan{};
  /// Whether a class may update what is offloaded to host memory, unless an argument lets
  /// any. Null: any may.
  std::function<bool(std::string_view optimizer, const Version& deepspeed)> takes_offloaded{};
  /// The newest of what its arguments use of torch; nothing: every release has it. Does not throw:
  /// `make` refuses what cannot be. Null: as nothing.
  std::function<std::optional<TorchFeature>(const StrategyArguments& arguments)> newest_feature{};
  /// To be proposed where memory is short, from the least to the most division.
  std::vector<DividedState> divided{};
  /// Classes beside `class_name` that make it.
  std::vector<ClassOfStrategy> other_classes{};

  /// What a rank is to the training. Null: each process trains on its own part of the samples, or
  /// one process does all, by `traits.layout`.
  std::function<TrainerMembership(const StrategyArguments& arguments, const Place& place)>
      membership{};
  /// Where ranks compute layers together: what each of them has of the network. Nothing: all of it,
  /// or arguments that `make` refuses. Null: all of it.
  std::function<std::optional<CutNetwork>(const Network& whole, const StrategyArguments& arguments,
                                          int32_t world_size, int32_t node_ranks)>
      cut{};
  /// Of how many trainers the gradients make one update. Null: of all that have samples of their
  /// own.
  std::function<int64_t(const StrategyArguments& arguments, int32_t world_size)>
      gradients_of_update{};

  /// Nothing: its pipeline has one rank. Null: the strategy has no pipeline.
  std::function<std::optional<PipelineBubble>(const StrategyArguments& arguments,
                                              int32_t world_size)>
      ideal_bubble{};

  TrainerMembership membership_of(const StrategyArguments& arguments, const Place& place) const;
  /// Of one of its classes; those of `class_name` for every other name.
  const std::vector<StrategyArgument>& arguments_of(std::string_view class_of_it) const;
  /// Whether the strategy is made with it.
  bool reads(std::string_view argument) const;
};

/// The strategies that a program knows. A strategy outside this tree is added with one line.
class StrategyRegistry {
 public:
  void add(StrategyEntry entry) { entries_.push_back(std::move(entry)); }
  /// By name or class name; null when unknown.
  const StrategyEntry* find(std::string_view name) const;
  /// The arguments of a class that makes one of the strategies; null: none of them.
  const std::vector<StrategyArgument>* arguments_of_class(std::string_view class_name) const;
  /// Those of the entry; of a strategy that is not known the default ones.
  StrategyTraits traits_of(std::string_view name) const;
  const std::vector<StrategyEntry>& entries() const { return entries_; }

 private:
  std::vector<StrategyEntry> entries_;
};

/// One device, dp, ddp, the sharded ones, and ddp by the other names that it has for the ways to
/// start processes.
StrategyRegistry standard_strategies();

/// What a program that is linked with `lockstep::program` has beside the standard strategies: it
/// defines this function in place of the library's, which gives none. Names that a standard
/// strategy has are ignored.
std::vector<StrategyEntry> additional_strategies();

/// The standard strategies and the additional ones.
StrategyRegistry all_strategies();

}  // namespace lockstep
