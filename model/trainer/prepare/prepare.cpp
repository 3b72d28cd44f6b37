#include "model/trainer/prepare/prepare.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "model/metric/log_dictionary.hpp"
#include "model/scenario/defaults.hpp"
#include "model/scenario/expressions_of.hpp"
#include "model/strategy/exchange/negotiation/negotiation_sites.hpp"
#include "model/strategy/strategy_steps.hpp"
#include "model/trainer/framework/torch_release.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"
#include "model/user_program/bare_program.hpp"
#include "model/user_program/sites.hpp"

namespace lockstep {

namespace {

bool uses_gloo(Preparation& preparation) {
  const Scenario& scenario = *preparation.scenario;
  if (scenario.process_group && scenario.process_group->backend) {
    const Placed<ProcessGroupBackend>& backend = *scenario.process_group->backend;
    if (backend.value == ProcessGroupBackend::mpi) {
      add_problem(preparation, Problem::Kind::unsupported, backend.place,
                  "the backend mpi is not modelled yet", "use nccl or gloo");
    }
    if (backend.value == ProcessGroupBackend::horovod) {
      // Built with NCCL where there are GPUs, else with Gloo.
      return value_or(scenario.cluster->collectives, CollectiveModel::nccl) ==
             CollectiveModel::gloo;
    }
    return backend.value == ProcessGroupBackend::gloo;
  }
  if (scenario.cluster && scenario.cluster->collectives) {
    return scenario.cluster->collectives->value == CollectiveModel::gloo;
  }
  return scenario.trainer && value_or(scenario.trainer->accelerator, std::string()) == "cpu";
}

// By first mention, so that the numbers are the same on all ranks.
void number_streams(Preparation& preparation, ProgramSettings& settings) {
  const auto add = [&](const Given<std::string>& name) {
    if (!name || name->value == "comm" || name->value == "compute" ||
        settings.queues.count(name->value) != 0) {
      return;
    }
    const auto count = static_cast<int64_t>(settings.queues.size());
    if (count == queue::named) {
      add_problem(preparation, Problem::Kind::invalid, name->place,
                  fmt::format("more than {} streams are named", queue::named));
    }
    settings.queues[name->value] =
        static_cast<uint8_t>(queue::first_named + std::min<int64_t>(count, queue::named - 1));
  };
  if (preparation.scenario->program) {
    for_each_statement(*preparation.scenario->program, [&](const Statement& statement) {
      add(statement.stream);
      add(statement.work.on);
    });
  }
  for (const auto& [name, number] : settings.queues) {
    preparation.stream_names.try_emplace(number, name);
  }
}

// What the framework refuses need not be modelled.
void drop_what_is_refused_anyway(Preparation& preparation) {
  std::vector<Problem>& problems = preparation.problems;
  const auto is_refused = [](const Problem& problem) {
    return problem.kind == Problem::Kind::refused;
  };
  if (std::any_of(problems.begin(), problems.end(), is_refused)) {
    std::erase_if(problems, [](const Problem& problem) {
      return problem.kind == Problem::Kind::unsupported;
    });
  }
}

}  // namespace

void add_problem(Preparation& preparation, Problem::Kind kind, const SourcePlace& place,
                 const std::string& message, const std::string& remedy, const std::string& code) {
  preparation.problems.push_back({kind, place, message, remedy, code});
}

bool Preparation::runnable() const {
  return program && std::none_of(problems.begin(), problems.end(),
                                 [](const Problem& problem) { return problem.stops(); });
}

std::optional<Version> version_asked(const Scenario& scenario, std::string_view library) {
  for (const LibraryVersion& asked : scenario.versions) {
    if (asked.library == library) {
      return version_of(asked.version);
    }
  }
  return std::nullopt;
}

Version torch_used(const Scenario& scenario, const Version& lightning) {
  return version_asked(scenario, "torch").value_or(torch_release_of(lightning));
}

namespace {

// torch 1.6 is the oldest that Lightning 1.4 takes; TorchMetrics has the classes and arguments that
// are modelled since 1.0; NCCL has the cost model that is followed since 2.8; of DeepSpeed, what it
// refuses follows its releases, and what it does is that of 0.16.
constexpr auto all_modelled_versions = std::to_array<ModelledVersions>({
    {"lightning", {1, 4, 0}, {2, 6, 0}},
    {"torch", {1, 6, 0}, {2, 11, 0}},
    {"torchmetrics", {1, 0, 0}, {1, 9, 0}},
    {"nccl", {2, 8, 0}, {2, 30, 0}},
    {"deepspeed", {0, 8, 0}, {0, 19, 0}},
});

std::string minor_text(const Version& version) {
  return fmt::format("{}.{}", version.major, version.minor);
}

/// Whether the version is modelled; else what the scenario asks of it need not be looked at.
bool check_modelled(Preparation& preparation, const LibraryVersion& library,
                    const Version& version) {
  const auto* const modelled =
      std::ranges::find(all_modelled_versions, library.library, &ModelledVersions::library);
  if (modelled == all_modelled_versions.end()) {
    add_problem(
        preparation, Problem::Kind::note, library.place,
        fmt::format("`versions.{}` has no effect: no rule here depends on it", library.library));
    return true;
  }
  const Version minor{version.major, version.minor, 0};
  if (minor >= modelled->oldest && minor <= modelled->newest) {
    return true;
  }
  const Version& nearest = minor > modelled->newest ? modelled->newest : modelled->oldest;
  add_problem(
      preparation, Problem::Kind::unsupported, library.place,
      fmt::format("{} {} is not modelled; versions {} to {} are", library.library, library.version,
                  minor_text(modelled->oldest), minor_text(modelled->newest)),
      fmt::format("write versions: {{{}: \"{}\"}}, the nearest one that is modelled",
                  library.library, minor_text(nearest)));
  return false;
}

// Rules of another version would refuse and note what is right in its own.
void check_versions(Preparation& preparation) {
  Preparation checked;
  bool all_modelled = true;
  for (const LibraryVersion& library : preparation.scenario->versions) {
    if (const std::optional<Version> version = version_of(library.version)) {
      all_modelled = check_modelled(checked, library, *version) && all_modelled;
    }
  }
  if (!all_modelled) {
    preparation.problems.clear();
  }
  std::ranges::move(checked.problems, std::back_inserter(preparation.problems));
}

}  // namespace

std::span<const ModelledVersions> modelled_versions() { return all_modelled_versions; }

ProgramSettings prepare_common(Preparation& preparation) {
  const Scenario& scenario = *preparation.scenario;
  ProgramSettings settings;
  settings.gloo = uses_gloo(preparation);
  settings.meets_by_name = meets_by_name(scenario);
  if (settings.meets_by_name) {
    read_named_calls(preparation, settings.named_calls);
  }
  settings.seed = static_cast<uint64_t>(value_or(scenario.seed, int64_t{0}));
  for (const LibraryVersion& library : scenario.versions) {
    if (library.library == "kernels") {
      continue;  // names whose kernels run, without a version
    }
    if (!version_of(library.version)) {
      add_problem(preparation, Problem::Kind::invalid, library.place,
                  fmt::format("`{}` is not a version", library.version), "write \"2.6\"");
    }
  }
  settings.torch = torch_used(scenario, preparation.placement.lightning);
  settings.avoids_record_streams =
      std::ranges::any_of(scenario.env, [](const EnvironmentVariable& variable) {
        return variable.name == "TORCH_NCCL_AVOID_RECORD_STREAMS" && variable.value == "1";
      });
  number_streams(preparation, settings);
  RunOptions& options = preparation.options;
  options.seed = settings.seed;
  const bool scales_first = preparation.placement.device == DeviceType::cuda && !settings.gloo;
  options.average_order =
      !scales_first ? AverageOrder::sum_then_divide : AverageOrder::scale_then_sum;
  options.any_source = settings.gloo;
  preparation.gloo = settings.gloo;
  preparation.timeout = time_limit_of_group(preparation);
  preparation.timeout_of_new_groups = time_limit_of_new_groups(preparation);
  if (scenario.process_group) {
    options.eager_limit = value_or(scenario.process_group->eager_limit, Bytes{});
  }
  return settings;
}

void prepare_bare(Preparation& preparation, const ProgramSettings& settings,
                  const WorldAbilities& world) {
  const ClusterSpec& cluster = *preparation.scenario->cluster;
  RunOptions& options = preparation.options;
  if (cluster.ranks->value < 1 || cluster.ranks->value > maximum_ranks) {
    add_problem(preparation, Problem::Kind::invalid, cluster.ranks->place,
                fmt::format("`ranks` is {}", cluster.ranks->value), "at least 1");
    return;
  }
  if (!preparation.scenario->program || !preparation.scenario->program->find("main")) {
    add_problem(preparation, Problem::Kind::invalid, cluster.ranks->place,
                "a program of `cluster.ranks` needs its `main`", "write program: {main: [..]}");
    return;
  }
  options.world_size = static_cast<int32_t>(cluster.ranks->value);
  const int64_t nodes = value_or(cluster.nodes, int64_t{1});
  const int64_t per_node = (cluster.ranks->value + nodes - 1) / std::max<int64_t>(nodes, 1);
  options.ranks_per_node = static_cast<int32_t>(value_or(cluster.gpus, per_node));
  take_hosts_of_bare_program(preparation);
  // Of those that meet by name each has a part of its own in the negotiation.
  options.classes = settings.meets_by_name ? nullptr : classes_of_bare_ranks(preparation, world);
  preparation.log = std::make_shared<RunLog>(options.world_size, options.classes);
  if (settings.meets_by_name) {
    for (const std::string_view step : negotiation_sites::every_step) {
      preparation.sites.add(step_called(step));
    }
  }
  auto program = std::make_shared<BareProgram>();
  program->scenario = preparation.scenario;
  program->settings = settings;
  program->settings.on_gpus = !settings.gloo;
  program->settings.ranks_of_nodes = options.ranks_of_nodes;
  program->log = preparation.log;
  preparation.program = bare_program(program);
}

Preparation prepare(const Scenario& scenario, const StrategyRegistry& registry,
                    const WorldAbilities& world) {
  Preparation preparation;
  preparation.options.attempt = world.attempt.number;
  Scenario decided = scenario;
  if (!scenario.is_bare_program()) {
    prepare_placement(preparation, decided, registry);
    take_configured_objects(preparation, decided, registry);
    prepare_process_group(preparation, decided);
    spell_out_dictionaries(decided);
  }
  ResolvedScenario resolved = with_defaults(std::move(decided));
  preparation.assumptions = std::move(resolved.assumptions);
  preparation.scenario = std::make_shared<const Scenario>(std::move(resolved.scenario));
  ProgramSettings settings = prepare_common(preparation);
  if (preparation.scenario->program) {
    settings.functions = &*preparation.scenario->program;
  }
  settings.stop_asked = world.stop_asked;
  settings.value_budget = world.value_budget;
  settings.stands_for = world.stands_for;
  settings.joins_evaluation = world.joins_evaluation;
  settings.gathers_rows = world.gathers_rows || preparation.placement.traits.gathers_rows;
  if (scenario.program) {
    preparation.sites.merge(sites_of(*scenario.program));
  }
  check_names_of_calls(preparation);
  if (scenario.is_bare_program()) {
    prepare_bare(preparation, settings, world);
  } else {
    check_combinations(preparation);
    check_objects(preparation);
    prepare_training(preparation, settings, registry, world);
  }
  prepare_launch(preparation);
  prepare_environment(preparation);
  find_unsupported(preparation, world);
  drop_what_is_refused_anyway(preparation);
  check_versions(preparation);
  return preparation;
}

}  // namespace lockstep
