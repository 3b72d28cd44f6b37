#include "rehearsal/explore/world_sizes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/scenario/rank_selection.hpp"
#include "model/trainer/prepare/strategy_arguments.hpp"
#include "rehearsal/explore/explore.hpp"
#include "rehearsal/explore/merge_explored.hpp"
#include "rehearsal/text/number_text.hpp"

namespace lockstep::cli {

namespace {

// Of an environment that says how many processes there are, and which of them this one is.
constexpr auto counted_by_launchers = {
    "WORLD_SIZE",   "RANK",          "LOCAL_RANK",   "LOCAL_WORLD_SIZE",
    "NODE_RANK",    "SLURM_NTASKS",  "SLURM_NNODES", "SLURM_NTASKS_PER_NODE",
    "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID"};

int64_t largest_divisor(int64_t number, int64_t most) {
  int64_t divisor = std::min(number, most);
  while (number % divisor != 0) {
    --divisor;
  }
  return divisor;
}

// Several nodes keep what each of them has; one node is filled first.
int64_t most_ranks_per_node(const Rehearsal& rehearsal, int64_t ranks) {
  const Placement& placement = rehearsal.run.preparation.placement;
  const auto own = static_cast<int64_t>(placement.devices.size());
  if (placement.nodes > 1) {
    return std::max<int64_t>(1, own);
  }
  if (placement.cpu) {
    return ranks;
  }
  const std::optional<ClusterSpec>& cluster = rehearsal.scenario->cluster;
  const int64_t occupied = cluster ? std::ssize(cluster->occupied) : 0;
  return std::max<int64_t>({1, own, placement.visible - occupied});
}

// In the words that the scenario has for it: 1.x knows several.
void set_devices(const Rehearsal& rehearsal, int64_t per_node, std::vector<std::string>& settings) {
  const Placement& placement = rehearsal.run.preparation.placement;
  const TrainerSpec trainer = rehearsal.scenario->trainer.value_or(TrainerSpec{});
  const bool old = placement.lightning < Version{1, 5, 0};
  const char* key = "devices";
  if (placement.cpu && (old || trainer.num_processes)) {
    key = "num_processes";
  } else if (!placement.cpu && (old || trainer.gpus)) {
    key = "gpus";
  }
  if (placement.device == DeviceType::tpu) {
    settings.emplace_back("trainer.tpu_cores=null");
    settings.emplace_back("trainer.accelerator=tpu");
  }
  for (const char* other : {"devices", "gpus", "num_processes"}) {
    settings.push_back(std::string(other) == key ? fmt::format("trainer.{}={}", key, per_node)
                                                 : fmt::format("trainer.{}=null", other));
  }
}

void set_launch(const Scenario& scenario, std::vector<std::string>& settings) {
  if (scenario.launcher) {
    settings.emplace_back("launcher=null");  // it starts as many as the scenario's own size
  }
  for (const EnvironmentVariable& variable : scenario.env) {
    if (std::count(counted_by_launchers.begin(), counted_by_launchers.end(), variable.name) != 0) {
      settings.push_back(fmt::format("env.{}=null", variable.name));
    }
  }
}

void set_hosts_of_launcher(const Scenario& scenario, int64_t per_node, Resized& resized) {
  const std::string& name = scenario.launcher->name;
  const std::vector<int64_t> slots(static_cast<size_t>(resized.nodes), per_node);
  const bool has_file = scenario.launcher->find("hostfile") != nullptr;
  resized.settings.push_back(fmt::format("launcher={{{}: {{np: {}, hosts: [{}]{}}}}}", name,
                                         per_node * resized.nodes, fmt::join(slots, ", "),
                                         has_file ? ", hostfile: null" : ""));
}

void grow_cluster(const Scenario& scenario, int64_t nodes, std::vector<std::string>& settings) {
  if (scenario.cluster && scenario.cluster->nodes && scenario.cluster->nodes->value < nodes) {
    settings.push_back(fmt::format("cluster.nodes={}", nodes));
  }
}

// An argument of the strategy may count the ranks: it follows them.
void set_strategy(const Rehearsal& rehearsal, int64_t ranks, Resized& resized) {
  const StrategyEntry* entry = strategies().find(rehearsal.run.preparation.registered_strategy);
  const std::optional<Object>& strategy = rehearsal.scenario->trainer->strategy;
  if (entry == nullptr || !entry->of_size || !strategy) {
    return;
  }
  const ArgumentsOfSize arguments = entry->of_size(strategy_arguments_of(*strategy), ranks);
  resized.why_not = arguments.why_not;
  if (!arguments.values.empty()) {
    resized.settings.push_back("trainer.strategy=" + text_with(*strategy, arguments.values));
  }
}

Resized resized_bare_program(const Rehearsal& rehearsal, int64_t ranks) {
  Resized resized;
  resized.settings.push_back(fmt::format("cluster.ranks={}", ranks));
  const Cluster& cluster = rehearsal.run.machine.cluster;
  const int64_t free =
      std::max<int64_t>(1, cluster.node.devices - static_cast<int64_t>(cluster.occupied.size()));
  grow_cluster(*rehearsal.scenario, (ranks + free - 1) / free, resized.settings);
  return resized;
}

void leave_out(Rehearsal& rehearsal, int64_t ranks, const std::string& why) {
  const std::string size = plural(ranks, "rank");
  rehearsal.coverage.complete = false;
  rehearsal.coverage.not_looked_at.push_back(fmt::format("{} ({})", size, why));
  if (rehearsal.sizes_left_out.empty()) {
    rehearsal.sizes_left_out = fmt::format("verify.world_sizes asks for {}, {} not simulated: {}",
                                           size, ranks == 1 ? "which was" : "which were", why);
  }
}

std::string why_it_did_not_run(const OneRun& run) {
  const auto stops = std::find_if(run.problems.begin(), run.problems.end(),
                                  [](const Problem& problem) { return problem.stops(); });
  if (stops != run.problems.end()) {
    return stops->message;
  }
  return run.undecided.empty() ? "the run did not start" : run.undecided;
}

std::string why_another_size(const Preparation& preparation) {
  const StrategyEntry* entry = strategies().find(preparation.registered_strategy);
  if (entry != nullptr && entry->traits.is_one_process()) {
    return fmt::format("{} runs in 1 process, whatever its devices", preparation.strategy);
  }
  return fmt::format("the scenario has {} then", plural(preparation.options.world_size, "rank"));
}

void explore_size(const CaseSource& source, const RehearseRequest& request, int64_t ranks,
                  Rehearsal& rehearsal) {
  const Resized resized = resized_to(rehearsal, ranks);
  if (!resized.why_not.empty()) {
    return leave_out(rehearsal, ranks, resized.why_not);
  }
  const LoadedScenarios loaded = source.load(resized.settings);
  if (!loaded.ok()) {
    return leave_out(rehearsal, ranks, loaded.diagnostics.front().message);
  }
  const Scenario& variant = loaded.scenarios.front();
  Explored explored = explore(variant, explore_request(variant, request));
  const int32_t became = explored.first.preparation.options.world_size;
  if (!explored.first.ran) {
    return leave_out(rehearsal, ranks, why_it_did_not_run(explored.first));
  }
  if (became != ranks) {
    return leave_out(rehearsal, ranks, why_another_size(explored.first.preparation));
  }
  rehearsal.coverage.world_sizes.push_back(became);
  if (resized.nodes > 1) {
    rehearsal.coverage.looked_at.push_back(
        fmt::format("{} ranks as {} nodes of {}", ranks, resized.nodes, ranks / resized.nodes));
  }
  rehearsal.sites.merge(explored.sites);
  add_coverage(rehearsal, explored);
  merge_findings(rehearsal, std::move(explored.findings),
                 fmt::format("with {}", plural(became, "rank")));
}

}  // namespace

bool is_sized_by_launcher(const Rehearsal& rehearsal) {
  const std::optional<Object>& launcher = rehearsal.scenario->launcher;
  return rehearsal.run.preparation.placement.strategy.is_horovod && launcher &&
         (launcher->name == "horovodrun" || launcher->name == "mpirun");
}

Resized resized_to(const Rehearsal& rehearsal, int64_t ranks) {
  const Scenario& scenario = *rehearsal.scenario;
  Resized resized;
  if (ranks > maximum_ranks) {
    resized.why_not = fmt::format("a run has at most {} ranks", maximum_ranks);
    return resized;
  }
  if (scenario.is_bare_program()) {
    return resized_bare_program(rehearsal, ranks);
  }
  const int64_t per_node = largest_divisor(ranks, most_ranks_per_node(rehearsal, ranks));
  resized.nodes = ranks / per_node;
  if (is_sized_by_launcher(rehearsal)) {
    set_hosts_of_launcher(scenario, per_node, resized);
  } else {
    set_devices(rehearsal, per_node, resized.settings);
    resized.settings.push_back(fmt::format("trainer.num_nodes={}", resized.nodes));
    set_launch(scenario, resized.settings);
  }
  set_strategy(rehearsal, ranks, resized);
  grow_cluster(scenario, resized.nodes, resized.settings);
  return resized;
}

void explore_world_sizes(const CaseSource& source, const RehearseRequest& request,
                         Rehearsal& rehearsal) {
  const Scenario& scenario = *rehearsal.scenario;
  if (!scenario.verify || !request.explore) {
    return;
  }
  size_t begun = 0;
  std::set<int64_t> seen = {rehearsal.run.preparation.options.world_size};
  for (const Placed<int64_t>& size : scenario.verify->world_sizes) {
    if (!seen.insert(size.value).second) {
      ++begun;
      continue;
    }
    if (request.deadline != nullptr && request.deadline->passed()) {
      leave_out(rehearsal, size.value, request.deadline->reason());
      return;
    }
    tell(request.progress.get(), fmt::format("with {} ranks, size {} of {}", size.value, ++begun,
                                             scenario.verify->world_sizes.size()));
    explore_size(source, request, size.value, rehearsal);
  }
}

}  // namespace lockstep::cli
