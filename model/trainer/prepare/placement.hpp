#pragma once

#include <string>
#include <vector>

#include "model/core/device_type.hpp"
#include "model/core/version.hpp"
#include "model/strategy/traits.hpp"
#include "model/trainer/framework/precision_choice.hpp"
#include "model/trainer/framework/strategy_choice.hpp"
#include "model/trainer/prepare/launch.hpp"

namespace lockstep {

/// The resolved arguments of a Trainer, for its version of Lightning, on this machine and under
/// this launcher: the first thing that is decided, before any default is filled.
struct Placement {
  Version lightning{2, 6, 0};
  bool cpu = false;
  DeviceType device = DeviceType::cuda;  ///< that trains; `cpu` says the same of the CPU
  bool interactive = false;              ///< in a notebook
  std::vector<int64_t> devices;  ///< GPUs of each node that train, by their place; on CPU processes
  std::vector<int64_t> numbers;  ///< the same GPUs as CUDA numbers them: `cuda:N`
  int64_t present = 0;           ///< GPUs of a node
  int64_t visible = 0;           ///< of them, that CUDA shows to rank 0
  int64_t nodes = 1;
  StrategyChoice strategy{};
  StrategyTraits traits{};       ///< of the strategy; the default ones where it is not known
  std::string strategy_class{};  ///< of Lightning; empty where it is not known
  std::vector<std::string> strategy_variables{};  ///< of the environment, that the strategy reads
  PrecisionChoice precision{};
  Launch launch{};  ///< of the processes that the strategy has, also where they are one a node
};

}  // namespace lockstep
