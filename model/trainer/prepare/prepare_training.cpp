#include <fmt/core.h>

#include <algorithm>

#include "model/network/arithmetic.hpp"
#include "model/network/mixture.hpp"
#include "model/scenario/expressions_of.hpp"
#include "model/strategy/local_model/batch_norm_sites.hpp"
#include "model/strategy/local_model/replica_layout.hpp"
#include "model/strategy/local_model/replica_sites.hpp"
#include "model/strategy/strategy_steps.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"
#include "model/user_program/sites.hpp"

namespace lockstep {

namespace {

using Kind = Problem::Kind;

constexpr Bytes most_valued_parameters{int64_t{64} << 20};
/// Of the reference arithmetic, unless it is asked for: some seconds of one core.
constexpr double most_simulated_flops = 5e9;
constexpr double simulated_flops_per_second = 2.5e9;
/// A layer with values beside its arithmetic, on one rank, forward and backward.
constexpr double seconds_per_valued_layer = 10e-6;
constexpr double most_seconds_of_values = 2.5;
/// Of the first steps of a longer fit, which are rehearsed beside the whole of it.
constexpr double seconds_of_first_values = 1.25;

/// What the values of a fit take this machine.
struct ValueWork {
  double flops = 0;
  double layers = 0;  ///< that ranks run, over all steps
  double seconds() const {
    return flops / simulated_flops_per_second + layers * seconds_per_valued_layer;
  }
};

/// What forward and backward of all ranks take, from the samples that a fit comes to: those of its
/// epochs (of one, where nothing bounds the run), or of its steps. Batches that an expression gives
/// count as one: it is evaluated by the ranks themselves.
ValueWork value_work_of_fit(const TrainingProgram& program, int64_t world_size) {
  double samples = 0;
  double batches = 0;  // of all ranks
  for (const LoaderSettings& loader : program.train) {
    const TrainerSettings& trainer = program.trainer;
    const double of_step = static_cast<double>(loader.batch_size) * static_cast<double>(world_size);
    const double of_epoch = loader.batches ? of_step : static_cast<double>(loader.samples);
    const double steps = static_cast<double>(trainer.max_steps) *
                         static_cast<double>(trainer.accumulate_grad_batches);
    const double of_fit =
        std::min(of_epoch * static_cast<double>(trainer.max_epochs), of_step * steps);
    samples += of_fit;
    batches += of_fit / static_cast<double>(std::max<int64_t>(1, loader.batch_size));
  }
  const Network& network = *program.network;
  return {samples * (static_cast<double>(network.forward_flops().count()) +
                     static_cast<double>(network.backward_flops().count())),
          batches * static_cast<double>(network.layers.size())};
}

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

bool trains(const Scenario& scenario) {
  const Hook* main = scenario.program ? scenario.program->find("main") : nullptr;
  return main == nullptr || find_statement(*main, StatementKind::fit) != nullptr;
}

/// What carries values.
struct Numerics {
  bool here = false;       ///< by the scenario, in a world of reference arithmetic
  bool in_detail = false;  ///< the operations are those of a run with values
  bool carried = false;    ///< in this world
  bool kept = false;      ///< the final parameters are read, in this world or in the one it repeats
  std::string why_not{};  ///< carried; empty: they are
  std::optional<double> affordable_part{};
};

std::string why_not_wanted(const std::string& asked, Bytes parameters) {
  if (asked == "false") {
    return "`verify.numerics` is false";
  }
  return asked == "auto" && parameters > most_valued_parameters
             ? fmt::format(
                   "its parameters take {} MiB, and values are computed up to {} MiB unless "
                   "`verify.numerics` is true",
                   parameters.count() >> 20, most_valued_parameters.count() >> 20)
             : "";
}

std::string why_no_reference(const Preparation& preparation, const Network& network) {
  const Layer* layer = network.layer_without_arithmetic(trains(*preparation.scenario));
  return layer == nullptr
             ? ""
             : fmt::format("layer `{}` ({}) has no reference arithmetic: {}", layer->name,
                           name_of(layer->kind), why_without_arithmetic(*layer, true));
}

bool holds_whole_state(const Preparation& preparation, const TrainingPlan& plan) {
  return preparation.placement.traits.holds_whole_state &&
         std::ranges::all_of(plan.optimizers, [](const OptimizerPlan& optimizer) {
           return optimizer.sharding == OptimizerPlan::Sharding::none;
         });
}

Numerics numerics_of(const Preparation& preparation, const TrainingProgram& program,
                     const WorldAbilities& world) {
  const std::optional<VerifySpec>& verify = preparation.scenario->verify;
  const std::string asked =
      verify ? value_or(verify->numerics, std::string("auto")) : std::string("auto");
  const Bytes parameters =
      Bytes(size_of(program.plan.parameter_dtype)) * program.network->parameter_elements();
  std::string not_wanted = why_not_wanted(asked, parameters);
  if (world.attempt.saved && !holds_whole_state(preparation, program.plan)) {
    not_wanted = "after a restart, the state that ranks hold in parts is not loaded";
  }
  if (!program.plans_of_ranks.empty()) {
    not_wanted = program.arguments_of_ranks.empty()
                     ? "ranks freeze different layers"
                     : "ranks have arguments of the strategy by which they cut layers differently";
  }
  const std::string no_reference = why_no_reference(preparation, *program.network);
  const bool wanted = not_wanted.empty();
  const ValueWork work = value_work_of_fit(program, preparation.options.world_size);
  const bool is_short = work.flops <= most_simulated_flops &&
                        (preparation.values_decide || work.seconds() <= most_seconds_of_values);
  const bool in_time = asked == "true" || world.computes_layers || is_short ||
                       (verify && value_or(verify->all_steps, false));
  Numerics numerics;
  const bool has_reference = wanted && no_reference.empty();
  const bool needless = world.arithmetic == Arithmetic::where_it_decides &&
                        !world.computes_layers && !preparation.values_decide;
  const bool computes = in_time && !needless;
  numerics.here = has_reference && computes && world.arithmetic != Arithmetic::never;
  numerics.kept = has_reference && (computes || world.repeats_operations);
  numerics.in_detail =
      numerics.here || (wanted && (world.computes_layers || world.repeats_operations));
  numerics.carried = numerics.here || (wanted && world.computes_layers);
  if (!numerics.carried) {
    numerics.why_not = !wanted          ? not_wanted
                       : !has_reference ? no_reference
                       : needless       ? "a prediction needs none"
                       : !in_time       ? fmt::format(
                                        "{:.2g} FLOPs of arithmetic in {:.2g} layers take too long "
                                              "unless `verify.numerics` is true",
                                        work.flops, work.layers)
                                  : "";
  }
  if (has_reference && !in_time) {
    numerics.affordable_part = seconds_of_first_values / work.seconds();
  }
  return numerics;
}

void add_sites_of(const StrategyEntry& entry, const TrainingPlan& plan, Sites& sites) {
  for (const Site& site : entry.sites) {
    sites.add(site);
  }
  if (entry.sites_of_plan) {
    for (const Site& site : entry.sites_of_plan(plan)) {
      sites.add(site);
    }
  }
  for (const std::string_view name : replica_sites::all) {
    sites.add(step_called(name));
  }
  for (const std::string_view name : batch_norm_sites::all) {
    sites.add(step_called(name));
  }
}

void take_entry(const StrategyEntry& entry, TrainingProgram& program) {
  program.make_strategy = entry.make;
  program.membership = [entry, arguments = program.strategy_arguments](const Place& place) {
    return entry.membership_of(arguments, place);
  };
}

void take_world(const Preparation& preparation, const WorldAbilities& world,
                TrainingProgram& program) {
  program.holds_whole_state = holds_whole_state(preparation, program.plan);
  program.clips_as = world.clips_as;
  program.scales_for = world.scales_for;
  program.repetition.kept = world.keeps_steps;
  program.store = world.attempt.store;
  program.saved = world.attempt.saved;
}

void take_classes(std::shared_ptr<const RankClasses> classes, RunOptions& options,
                  TrainingProgram& program) {
  for (size_t number = 0; classes && number < classes->size(); ++number) {
    program.repetition.deciding_ranks.push_back(classes->first(number));
  }
  options.classes = std::move(classes);
}

void take_numerics(const Numerics& numerics, TrainingProgram& program) {
  const auto take = [&numerics](TrainingPlan& plan) {
    plan.numerics = numerics.in_detail;
    plan.valueless = !numerics.carried;
  };
  take(program.plan);
  for (auto& [rank, plan] : program.plans_of_ranks) {
    take(plan);
  }
  program.keeps_parameters = numerics.kept;
}

// As Lightning finds it (strategies/deepspeed.py, _auto_select_batch_size): several loaders have no
// batch sampler.
int64_t batch_size_of(const std::vector<LoaderSettings>& loaders) {
  if (loaders.size() != 1) {
    return 1;
  }
  return loaders.front().batch_size_of_rank ? 0 : loaders.front().batch_size;
}

std::vector<std::string> checkpointed_by(const StrategyEntry* entry,
                                         const TrainingProgram& program) {
  return entry != nullptr && entry->checkpointed_classes
             ? entry->checkpointed_classes(program.strategy_arguments)
             : std::vector<std::string>();
}

// Without values nothing can overflow.
void take_loss_scale(Preparation& preparation, const WorldAbilities& world, bool has_values,
                     TrainingProgram& program) {
  const PrecisionChoice& precision = preparation.placement.precision;
  program.scales_loss = precision.scales_loss && !world.scales_no_loss;
  const auto& given = preparation.scenario->trainer->precision;
  if (precision.scales_loss && !has_values && given) {
    add_problem(preparation, Problem::Kind::note, given->place,
                "GradScaler skips no step here: values are not computed, so no gradient overflows");
  }
}

void take_traits(Preparation& preparation, const WorldAbilities& world, bool has_values,
                 TrainingProgram& program) {
  const StrategyTraits& traits = preparation.placement.traits;
  take_loss_scale(preparation, world, has_values, program);
  program.accumulates_itself = traits.accumulates_itself;
  program.backward_in_forward = traits.backward_in_forward;
  program.manual_clipping = traits.manual_clipping;
  program.gathers_parameters = traits.gathers_parameters;
}

bool take_network(Preparation& preparation, const StrategyEntry& entry, const WorldAbilities& world,
                  TrainingProgram& program) {
  program.plan.world_size = preparation.options.world_size;
  const Launch& launch = preparation.placement.launch;
  program.plan.node_ranks = launch.is_uneven() ? -1 : launch.processes_per_node;
  preparation.groups_experts = entry.traits.groups_experts || world.groups_experts;
  if (preparation.groups_experts && has_mixtures(*program.network) &&
      program.network->modules.empty()) {
    program.network = std::make_shared<const Network>(with_grouped_experts(*program.network));
  }
  preparation.network = program.network;
  const bool fine = cut_network(preparation, entry, program);
  program.plan.network = program.network.get();
  program.plan.whole_network = program.whole_network.get();
  return fine;
}

void add_sites(Preparation& preparation, TrainingProgram& program) {
  for (const Stage stage : {Stage::fit, Stage::validate, Stage::test, Stage::predict}) {
    program.sites[static_cast<size_t>(stage)] = add_trainer_sites(preparation.sites, stage);
  }
  if (preparation.scenario->program) {
    program.log_sites = add_log_sites(*preparation.scenario->program, preparation.sites);
  }
}

}  // namespace

void prepare_training(Preparation& preparation, const ProgramSettings& settings,
                      const StrategyRegistry& registry, const WorldAbilities& world) {
  auto program = std::make_shared<TrainingProgram>();
  program->scenario = preparation.scenario;
  program->settings = settings;
  add_sites(preparation, *program);
  prepare_metrics(preparation, *program);
  const StrategyEntry* entry = prepare_devices(preparation, registry, *program);
  refuse_unsynchronised_metrics(preparation);
  const std::vector<std::string> checkpointed = checkpointed_by(entry, *program);
  program->network = prepare_network(preparation, checkpointed);
  prepare_trainer_settings(preparation, program->trainer);
  if (preparation.scenario->program) {
    program->trainer.automatic_optimization =
        value_or(preparation.scenario->program->automatic_optimization, true);
  }
  prepare_plan(preparation, *program);
  prepare_schedulers(preparation, *program);
  prepare_callbacks(preparation, *program);
  if (entry == nullptr || !program->network) {
    return;
  }
  prepare_modules(preparation, *program);
  prepare_loaders(preparation, *program);
  program->plan.batch_size = batch_size_of(program->train);
  if (!take_network(preparation, *entry, world, *program)) {
    return;
  }
  prepare_frozen_on_ranks(preparation, checkpointed, *program);
  prepare_cut_on_ranks(preparation, *entry, *program);
  preparation.values_decide = values_decide(*program);
  const Numerics numerics = numerics_of(preparation, *program, world);
  take_numerics(numerics, *program);
  find_names_used(*program);
  add_sites_of(*entry, program->plan, preparation.sites);
  take_entry(*entry, *program);
  take_repetition(preparation, *program);
  take_world(preparation, world, *program);
  take_traits(preparation, world, numerics.carried, *program);
  check_trainable(preparation, *program);
  check_gathered_samples(preparation, *program);
  check_loss_of_whole_batch(preparation);
  check_ignored_clipping(preparation, *entry);
  program->plan.layout = layout_of(program->plan);
  if (!try_strategy(preparation, *entry, *program)) {
    return;
  }
  RunOptions& options = preparation.options;
  options.numerics = numerics.carried;
  preparation.why_without_values = numerics.why_not;
  preparation.affordable_part = numerics.affordable_part;
  options.network = program->network.get();
  preparation.plan = program->plan;
  preparation.lightning = program->trainer.lightning;
  take_classes(classes_of_ranks(preparation, *entry, *program, world), options, *program);
  note_data_parallel_indices(preparation, *program);
  preparation.log = std::make_shared<RunLog>(options.world_size, options.classes);
  program->log = preparation.log;
  preparation.program = training_program(program);
}

}  // namespace lockstep
