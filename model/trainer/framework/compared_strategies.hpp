#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/core/device_type.hpp"
#include "model/core/version.hpp"

namespace lockstep {

/// A strategy to try on a training.
struct ComparedStrategy {
  std::string label;                    ///< in a table
  std::string strategy;                 ///< a name or class
  std::string arguments{};              ///< of the class, as a scenario writes them; empty: none
  std::vector<std::string> settings{};  ///< KEY=VALUE, beside the strategy
  std::string whole{};                  ///< not empty: in place of `strategy` and `arguments`
  std::string note{};                   ///< what its figures show; empty: what its name says

  std::string text() const {
    if (!whole.empty()) {
      return whole;
    }
    return arguments.empty() ? strategy : "{" + strategy + ": {" + arguments + "}}";
  }
};

/// What the choice of strategies and of their arguments depends on.
struct ComparedTraining {
  Version lightning{2, 6, 0};
  DeviceType device = DeviceType::cuda;
  int64_t devices = 1;  ///< of a node
  int64_t nodes = 1;
  int64_t batch_size = 0;     ///< of the training's DataLoader; 0: unknown
  std::string_view narrow{};  ///< of mixed precision, as in "bf16"; empty: there is none
};

/// Strategies to try on a training, each of another kind, from one device to the most division.
/// Versions of Lightning refuse some of them. What needs arguments to divide the model has them:
/// without a policy FSDP gathers all of it at once. Where only XLA drives the devices, its
/// strategies come first.
std::vector<ComparedStrategy> strategies_to_compare(const ComparedTraining& training);

}  // namespace lockstep
