#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/core/device_type.hpp"
#include "model/core/version.hpp"
#include "model/strategy/registry.hpp"
#include "model/trainer/framework/strategy_names.hpp"

namespace lockstep {

/// The inputs that decide which strategy a Trainer takes.
struct StrategySituation {
  Version lightning{2, 6, 0};
  bool cpu = false;
  DeviceType device = DeviceType::cuda;  ///< where it is not the CPU
  int64_t devices = 1;                   ///< of a node
  int64_t nodes = 1;
  bool interactive = false;         ///< in a notebook
  bool started_externally = false;  ///< torchrun or srun has made the processes
  bool horovodrun = false;
};

/// Which strategy that becomes, or why none.
struct StrategyChoice {
  std::string name{};  ///< of our registry: "ddp", "ddp_spawn"
  StartMethod start = StartMethod::script;
  /// Arguments of the strategy that its name stands for.
  std::vector<std::pair<std::string, StrategyArguments::Value>> arguments{};
  bool scales_learning_rate = false;  ///< Lightning's integration does, by the number of ranks
  bool is_horovod = false;            ///< its ranks are started by horovodrun or mpirun
  std::string refusal{};              ///< not empty: Lightning raises
  bool is_unmodelled = false;         ///< the version would not raise: the limit is ours
  std::string remedy{};
  std::string warning{};  ///< Lightning takes something else than what is asked for
};

/// Reads a name or class of Lightning's registry as the version does (accelerator_connector.py of
/// 1.6.5 and 2.x, strategies/*.py: register_strategies). Empty or `auto`: Lightning chooses. Names
/// that are not Lightning's pass unchanged.
StrategyChoice choose_strategy(std::string_view asked, const StrategySituation& situation,
                               const StrategyRegistry& registry);

/// A value of `accelerator` that names a strategy, as up to 1.6 it could; nothing: it names none.
struct NamedByAccelerator {
  std::string_view strategy;
  bool is_cpu = false;   ///< `ddp_cpu`
  bool is_taken = true;  ///< 1.4 and 1.5 take few of the names there
};
std::optional<NamedByAccelerator> strategy_of_accelerator(std::string_view accelerator,
                                                          const Version& lightning);

/// Whether it names a strategy, which `plugins` took up to 1.6.
bool is_strategy_of_plugins(std::string_view plugin);

/// Applies `start_method` (popen, spawn, fork; of the spawning classes of 1.x spawn, fork): a
/// strategy is registered under a name for each way to start it, NAME_spawn and NAME_fork. False
/// where there is no such way.
bool start_by(const std::string& method, const StrategyRegistry& registry, StrategyChoice& choice);

/// The newest Lightning that has this name or class; nothing: the newest of all.
std::optional<Version> newest_with_strategy(std::string_view asked);

}  // namespace lockstep
