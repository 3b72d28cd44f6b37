#include <fmt/core.h>
#include <fmt/ranges.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "model/core/spelling.hpp"
#include "model/strategy/registry.hpp"
#include "model/strategy/server/parameter_server.hpp"
#include "model/strategy/server/server_sites.hpp"
#include "model/strategy/strategy_steps.hpp"

namespace lockstep {

namespace {

constexpr std::array server_rows{
    StrategyArgument{"mode", "text", "sync",
                     "which gradients make an update: sync, batched, async or ssp"},
    StrategyArgument{"servers", "int", "1", "ranks that hold the weights, the last ones"},
    StrategyArgument{"batch", "int", "null", "of batched: gradients that make an update",
                     ArgumentUse::strategy, "must be given"},
    StrategyArgument{"max_staleness", "int", "null",
                     "of ssp: steps that a worker may be ahead of the slowest",
                     ArgumentUse::strategy, "must be given"},
    StrategyArgument{"drop_late", "bool", "false",
                     "of batched: gradients computed by older weights are thrown away"},
    StrategyArgument{"join", "bool", "true",
                     "servers no longer wait for a worker whose training has ended"},
    process_group_backend,
    process_group_timeout,
};

struct ModeRow {
  std::string_view name;
  ServerMode mode;
};
constexpr std::array modes{ModeRow{"sync", ServerMode::sync},
                           ModeRow{"batched", ServerMode::batched},
                           ModeRow{"async", ServerMode::async}, ModeRow{"ssp", ServerMode::ssp}};

ServerMode mode_of(const StrategyArgumentReader& read) {
  const std::string name = read.text("mode");
  std::vector<std::string_view> names;
  for (const ModeRow& row : modes) {
    if (row.name == name) {
      return row.mode;
    }
    names.push_back(row.name);
  }
  const std::string close = did_you_mean(name, names);
  throw ArgumentProblem(
      "ParameterServerStrategy has no mode `" + name + "`", "mode",
      close.empty() ? fmt::format("its modes are {}", fmt::join(names, ", ")) : close);
}

// An argument of one mode, in others an error: it would change nothing.
int64_t number_of_mode(const StrategyArgumentReader& read, const std::string& name, bool is_of_mode,
                       std::string_view mode, int64_t least) {
  if (is_of_mode != read.given().has(name)) {
    throw is_of_mode
        ? ArgumentProblem(fmt::format("mode: {} needs the argument {}", mode, name), name,
                          fmt::format("write {}: 2, for example", name))
        : ArgumentProblem(fmt::format("{} is an argument of mode: {} alone", name, mode), name,
                          fmt::format("write mode: {}, or leave {} out", mode, name));
  }
  const int64_t value = read.integer(name);
  if (is_of_mode && value < least) {
    throw ArgumentProblem(fmt::format("strategy argument {} must be at least {}", name, least),
                          name);
  }
  return value;
}

int32_t servers_of(const TrainingPlan& plan, const StrategyArgumentReader& read) {
  const int64_t servers = read.integer("servers");
  if (servers < 1) {
    throw ArgumentProblem("strategy argument servers must be at least 1", "servers");
  }
  if (plan.world_size > 0 && servers >= plan.world_size) {
    throw ArgumentProblem(
        fmt::format("{} of {} ranks {} and none is left to train", servers, plan.world_size,
                    servers == 1 ? "is a server," : "are servers,"),
        "servers", "use more devices or fewer servers: every other rank is a worker");
  }
  int64_t elements = 0;
  for (const ParameterPlace place : plan.network->parameters()) {
    const auto& tensor = plan.network->parameter(place);
    elements += tensor.trainable ? tensor.elements() : 0;
  }
  if (servers > elements) {
    throw ArgumentProblem(
        fmt::format("{} servers cannot divide {} trained numbers", servers, elements), "servers",
        "use fewer servers");
  }
  return static_cast<int32_t>(servers);
}

void check_optimizers(const TrainingPlan& plan) {
  if (plan.optimizers.size() > 1) {
    throw UnmodelledArgument("several optimizers under ParameterServerStrategy are not modelled",
                             "", "use one optimizer, or strategy: ddp");
  }
  const OptimizerPlan& optimizer = plan.optimizers.front();
  if (optimizer.sharding != OptimizerPlan::Sharding::none) {
    throw ArgumentProblem(
        "ZeroRedundancyOptimizer divides state among ranks that train; here servers hold it", "",
        "use the optimizer itself, or strategy: ddp");
  }
  if (optimizer.kind == OptimizerKind::qadam) {
    throw ArgumentProblem("QAdamOptimizer needs BaguaStrategy", "", "use SGD, Adam or AdamW");
  }
}

ServerOptions options_from(const TrainingPlan& plan, const StrategyArguments& arguments) {
  const StrategyArgumentReader read(arguments, server_rows);
  check_optimizers(plan);
  ServerOptions options;
  options.mode = mode_of(read);
  options.servers = servers_of(plan, read);
  const bool is_batched = options.mode == ServerMode::batched;
  options.batch = number_of_mode(read, "batch", is_batched, "batched", 1);
  options.max_staleness =
      number_of_mode(read, "max_staleness", options.mode == ServerMode::ssp, "ssp", 0);
  options.drop_late = read.boolean("drop_late");
  options.join = read.boolean("join");
  if (options.drop_late && !is_batched) {
    throw ArgumentProblem("drop_late is an argument of mode: batched alone", "drop_late",
                          "in the other modes no gradient is late");
  }
  const int64_t workers = plan.world_size - options.servers;
  if (plan.world_size > 0 && options.batch > workers) {
    throw ArgumentProblem(
        fmt::format("batch: {} gradients never come: there are {} workers", options.batch, workers),
        "batch", fmt::format("write batch: {} or less", workers));
  }
  return options;
}

TrainerMembership membership_of_server(const StrategyArguments& arguments, const Place& place) {
  const auto servers = static_cast<int32_t>(arguments.integer("servers", 1));
  const ServerRoles roles = ServerRoles::of(place.world_size, servers);
  const auto rank = static_cast<int32_t>(place.rank.value);
  TrainerMembership membership{roles.workers, rank, roles.workers, rank};
  membership.runs_trainer = !roles.is_server(rank);
  return membership;
}

int64_t gradients_of_server_update(const StrategyArguments& arguments, int32_t world_size) {
  const std::string mode = arguments.text("mode", "sync");
  if (mode == "sync") {
    return world_size - arguments.integer("servers", 1);
  }
  return mode == "batched" ? arguments.integer("batch", 1) : 1;
}

// Servers keep their number while there is a worker for each.
ArgumentsOfSize arguments_of_size(const StrategyArguments& arguments, int64_t ranks) {
  ArgumentsOfSize changed;
  const int64_t servers = arguments.integer("servers", 1);
  if (ranks < 2) {
    changed.why_not = "a parameter server needs a worker beside it";
  } else if (servers >= ranks) {
    changed.values.emplace_back("servers", "1");
  }
  const int64_t workers = ranks - std::min(servers, ranks - 1);
  if (arguments.has("batch") && arguments.integer("batch", 1) > workers) {
    changed.values.emplace_back("batch", std::to_string(workers));
  }
  return changed;
}

}  // namespace

StrategyEntry parameter_server() {
  StrategyEntry entry;
  entry.name = "parameter_server";
  entry.class_name = "ParameterServerStrategy";
  entry.arguments.assign(server_rows.begin(), server_rows.end());
  add_steps(server_sites::every_step, entry.sites);
  entry.make = [](const TrainingPlan& plan, const StrategyArguments& arguments) {
    return std::make_unique<ParameterServer>(plan, options_from(plan, arguments));
  };
  entry.of_size = arguments_of_size;
  entry.membership = membership_of_server;
  entry.gradients_of_update = gradients_of_server_update;
  return entry;
}

}  // namespace lockstep
