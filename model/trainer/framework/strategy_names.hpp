#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "model/core/version.hpp"

namespace lockstep {

/// How a strategy makes the processes of a node.
enum class StartMethod : uint8_t {
  script,  ///< the command is run again for each process (subprocess_script.py)
  spawn,   ///< torch.multiprocessing, new interpreters: everything is pickled
  fork,    ///< copies of the main process: nothing is pickled, CUDA must be untouched
};

/// A name or class by which the Trainer of some version takes a strategy, or that guides take for
/// one.
struct StrategyName {
  std::string_view name{};
  std::string_view strategy{};  ///< of our registry; empty: no version is simulated with it
  StartMethod start = StartMethod::script;
  std::string_view arguments{};  ///< that the name stands for: "stage=2 offload_optimizer=true"
  Version since{};
  Version until{99, 0, 0};     ///< the first without it
  std::string_view instead{};  ///< what to write in versions that have it not
  /// _check_strategy_and_fallback of 1.x: taken in its place on the CPU, or where a launcher has
  /// started the processes.
  std::string_view on_cpu{};
  std::string_view under_launcher{};
  bool scales_learning_rate = false;
  /// DistributedType of 1.4 and 1.5, which alone `accelerator` takes there.
  bool is_type = false;
  std::string_view gone{};  ///< what became of it; empty: it was removed
  /// Why a version that has the name cannot run it here, or why it is no name at all.
  std::string_view refusal{};
  bool is_unmodelled = false;     ///< the version would run it: the limit is ours
  std::string_view used_to_be{};  ///< the class of today that an old one stands for
};

/// Null where no version has it and nobody takes it for one.
const StrategyName* find_strategy_name(std::string_view name);
std::span<const StrategyName> strategy_names();

/// Today's class for one of `pytorch_lightning.plugins` up to 1.7 (DDPPlugin: DDPStrategy); every
/// other name is given back.
std::string_view class_of_today(std::string_view name);

}  // namespace lockstep
