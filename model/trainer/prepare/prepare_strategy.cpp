// The strategy of a training: what it takes, what its ranks are, and what each has of the network.
#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "model/network/optimizer/optimizer_rule.hpp"
#include "model/strategy/exchange/first_weights.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"
#include "model/trainer/prepare/strategy_arguments.hpp"

namespace lockstep {

namespace {

using Kind = Problem::Kind;

// By the name that StrategyArguments gives it: "config.zero_optimization.stage".
SourcePlace place_of_argument(const Object& strategy, const std::string& name,
                              ArgumentProblem::Part part = ArgumentProblem::Part::value) {
  for (const ObjectArgument& argument : strategy.arguments) {
    if (argument.name == name) {
      return argument.place;
    }
    if (name.starts_with(argument.name + ".")) {
      const PlainEntry* entry = find_argument_entry(strategy, name);
      if (entry != nullptr && part == ArgumentProblem::Part::name && entry->key_place.line > 0) {
        return entry->key_place;
      }
      return entry == nullptr ? argument.place : entry->value.place;
    }
  }
  return strategy.place;
}

void note_arguments_without_effect(Preparation& preparation, const StrategyEntry& entry,
                                   const TrainingProgram& program) {
  if (!entry.without_effect) {
    return;
  }
  for (const auto& [name, why] : entry.without_effect(program.plan, program.strategy_arguments)) {
    add_problem(preparation, Kind::note,
                place_of_argument(*preparation.scenario->trainer->strategy, name), why);
  }
}

// Bounds of rounding are wide for such optimizers, and may hide what this changes (LS306).
void warn_of_norms_of_parts(Preparation& preparation, const StrategyEntry& entry,
                            const TrainingProgram& program) {
  if (!entry.gives_parts || !entry.gives_parts(program.plan, program.strategy_arguments)) {
    return;
  }
  for (const OptimizerPlan& optimizer : program.plan.optimizers) {
    if (!rule_of(optimizer.kind).is_elementwise()) {
      add_problem(preparation, Kind::warning, preparation.scenario->trainer->strategy->place,
                  fmt::format("{} scales its update by norms or means of tensors, and {} gives it "
                              "on each rank what that rank holds of them: the weights are not "
                              "those of one device",
                              rule_of(optimizer.kind).name(), entry.class_name),
                  "use an optimizer that looks at each element alone, as AdamW does, or a strategy "
                  "whose optimizer has whole tensors (ddp, ZeroRedundancyOptimizer)",
                  ignored_code);
      return;
    }
  }
}

/// What an entry says when it is asked for a strategy with these arguments.
struct Made {
  std::unique_ptr<Strategy> strategy{};  ///< null: there is a problem
  Problem problem{};
  std::string argument{};  ///< that the problem is about; empty: none
  ArgumentProblem::Part part = ArgumentProblem::Part::value;
};

Made make_strategy(const StrategyEntry& entry, const TrainingPlan& plan,
                   const StrategyArguments& arguments) {
  const auto refuse = [](Kind kind, const ArgumentProblem& error, const std::string& code = "") {
    return Made{
        nullptr, {kind, {}, error.what(), error.remedy(), code}, error.argument(), error.part()};
  };
  try {
    return {.strategy = entry.make(plan, arguments)};
  } catch (const UnmodelledArgument& error) {
    return refuse(Kind::unsupported, error);
  } catch (const RefusedArgument& error) {
    return refuse(Kind::refused, error, refused_code);
  } catch (const ArgumentProblem& error) {
    return refuse(Kind::invalid, error);
  } catch (const std::invalid_argument& error) {  // of a strategy outside this tree
    return refuse(Kind::invalid, ArgumentProblem(error.what()));
  }
}

// All arguments that are wrong, by leaving out each that has been found. What the framework refuses
// ends the search: alone it is the verdict, and later it may come of what was left out.
void name_wrong_arguments(Preparation& preparation, const StrategyEntry& entry,
                          const TrainingProgram& program, Made made) {
  const Object& strategy = *preparation.scenario->trainer->strategy;
  StrategyArguments arguments = program.strategy_arguments;
  for (bool is_first = true; made.strategy == nullptr; is_first = false) {
    const bool is_last = !arguments.erase(made.argument) || made.problem.kind == Kind::refused;
    if (is_last && !is_first) {
      return;
    }
    made.problem.place = place_of_argument(strategy, made.argument, made.part);
    preparation.problems.push_back(made.problem);
    if (is_last) {
      return;
    }
    made = make_strategy(entry, program.plan, arguments);
  }
}

// False: the Trainer asks for something that the strategy cannot do with its arguments.
bool check_trainer_limits(Preparation& preparation, const StrategyEntry& entry,
                          const TrainingProgram& program) {
  if (!entry.trainer_limits) {
    return true;
  }
  const TrainerLimits limits = entry.trainer_limits(program.strategy_arguments);
  const size_t before = preparation.problems.size();
  const auto refuse = [&preparation](const TrainerLimit& limit, bool asks, const auto& key) {
    if (asks && key && !limit.why_not.empty()) {
      add_problem(preparation, Kind::invalid, key->place, limit.why_not, limit.remedy);
    }
  };
  const TrainerSpec& trainer = *preparation.scenario->trainer;
  const bool by_norm =
      program.trainer.gradient_clipping.algorithm == GradientClipping::Algorithm::norm;
  refuse(limits.accumulation, program.trainer.accumulate_grad_batches > 1,
         trainer.accumulate_grad_batches);
  refuse(limits.clipping_by_norm, by_norm, trainer.gradient_clip_val);
  if (preparation.scenario->program) {
    refuse(limits.manual, !program.trainer.automatic_optimization,
           preparation.scenario->program->automatic_optimization);
  }
  return preparation.problems.size() == before;
}

void note_membership(Preparation& preparation, const StrategyEntry& entry,
                     const TrainingProgram& program) {
  Place place;
  place.world_size = preparation.options.world_size;
  place.local_world_size = preparation.placement.launch.processes_per_node;
  const TrainerMembership first = program.membership(place);
  preparation.data_parallel_size = first.data_parallel_size;
  preparation.batch_size_multiple = first.batch_size_multiple;
  preparation.fixes_batch_size = first.fixes_batch_size;
  preparation.gradients_of_update =
      entry.gradients_of_update
          ? entry.gradients_of_update(program.strategy_arguments, place.world_size)
          : preparation.data_parallel_size;
  if (!entry.ideal_bubble) {
    return;
  }
  preparation.ideal_bubble = entry.ideal_bubble(program.strategy_arguments, place.world_size);
  for (int32_t rank = 0; preparation.ideal_bubble && rank < place.world_size; ++rank) {
    place.rank = RankId{static_cast<uint32_t>(rank)};
    if (program.membership(place).data_parallel_index == first.data_parallel_index) {
      preparation.pipeline_ranks.push_back(rank);
    }
  }
}

// Of ranks that are given other arguments, or freeze other layers.
bool try_strategy_of_ranks(Preparation& preparation, const StrategyEntry& entry,
                           const TrainingProgram& program) {
  std::set<int32_t> ranks;
  for (const auto& [rank, arguments] : program.arguments_of_ranks) {
    ranks.insert(rank);
  }
  for (const auto& [rank, plan] : program.plans_of_ranks) {
    ranks.insert(rank);
  }
  for (const int32_t rank : ranks) {
    Made own = make_strategy(entry, program.plan_of(rank), program.arguments_of(rank));
    if (own.strategy == nullptr) {
      own.problem.place = place_of_argument(*preparation.scenario->trainer->strategy, own.argument);
      own.problem.message = fmt::format("rank {}: {}", rank, own.problem.message);
      preparation.problems.push_back(own.problem);
      return false;
    }
  }
  return true;
}

// torch/nn/parallel/distributed.py has it since pull request 142824.
void check_init_sync(Preparation& preparation, const TrainingProgram& program) {
  const std::string name(init_sync_argument);
  if (program.strategy_arguments.has(name) && program.settings.torch < Version{2, 7, 0}) {
    add_problem(preparation, Kind::refused,
                place_of_argument(*preparation.scenario->trainer->strategy, name),
                "TypeError: DistributedDataParallel.__init__() got an unexpected keyword argument "
                "'init_sync': it came with torch 2.7",
                "leave it out, or use torch 2.7 or newer", refused_code);
  }
}

bool has_its_features(Preparation& preparation, const StrategyEntry& entry,
                      const TrainingProgram& program) {
  const std::optional<TorchFeature> newest =
      entry.newest_feature ? entry.newest_feature(program.strategy_arguments) : std::nullopt;
  if (!newest || program.settings.torch >= newest->since) {
    return true;
  }
  const std::string since = fmt::format("torch {}.{}", newest->since.major, newest->since.minor);
  add_problem(
      preparation, Kind::refused,
      place_of_argument(*preparation.scenario->trainer->strategy, newest->argument),
      fmt::format("{} came with {}", newest->name, since),
      fmt::format("set versions.torch to {}.{} or newer", newest->since.major, newest->since.minor),
      refused_code);
  return false;
}

}  // namespace

bool try_strategy(Preparation& preparation, const StrategyEntry& entry,
                  const TrainingProgram& program) {
  Made made = make_strategy(entry, program.plan, program.strategy_arguments);
  if (made.strategy == nullptr) {
    name_wrong_arguments(preparation, entry, program, std::move(made));
    return false;
  }
  check_init_sync(preparation, program);
  if (!has_its_features(preparation, entry, program)) {
    return false;
  }
  if (!try_strategy_of_ranks(preparation, entry, program)) {
    return false;
  }
  if (!check_trainer_limits(preparation, entry, program)) {
    return false;
  }
  // One entry may stand for several strategies: "deepspeed" for each of its stages.
  const std::string_view name = made.strategy->name();
  preparation.registered_strategy = entry.name;
  note_membership(preparation, entry, program);
  preparation.strategy = name.starts_with(entry.name) ? name : entry.name;
  preparation.configured_clipping = made.strategy->configured_clipping();
  preparation.gradient_clipping =
      preparation.configured_clipping.value_or(program.trainer.gradient_clipping);
  note_configured_clipping(preparation, program.trainer.gradient_clipping);
  note_arguments_without_effect(preparation, entry, program);
  warn_of_norms_of_parts(preparation, entry, program);
  return true;
}

bool may_be_cut(Preparation& preparation, const CutNetwork& cut, const std::string& on) {
  if (cut.why_not.empty()) {
    return true;
  }
  const Object& strategy = *preparation.scenario->trainer->strategy;
  add_problem(preparation, cut.is_unmodelled ? Kind::unsupported : Kind::refused,
              place_of_argument(strategy, "parallelize_plan." + cut.where),
              on + cut.where + ": " + cut.why_not, cut.remedy,
              cut.is_unmodelled ? "" : refused_code);
  return false;
}

bool cut_network(Preparation& preparation, const StrategyEntry& entry, TrainingProgram& program) {
  if (!entry.cut) {
    return true;
  }
  std::optional<CutNetwork> cut = entry.cut(*program.network, program.strategy_arguments,
                                            program.plan.world_size, program.plan.node_ranks);
  if (!cut) {
    return true;
  }
  if (!may_be_cut(preparation, *cut, "")) {
    return false;
  }
  for (const std::string& note : cut->notes) {
    add_problem(preparation, Kind::note,
                place_of_argument(*preparation.scenario->trainer->strategy, "parallelize_plan"),
                note);
  }
  program.whole_network =
      std::exchange(program.network, std::make_shared<const Network>(std::move(cut->network)));
  return true;
}

}  // namespace lockstep
