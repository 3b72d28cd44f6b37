#pragma once

#include <string>

#include "model/core/version.hpp"
#include "model/trainer/prepare/prepare.hpp"

namespace lockstep {

/// The strategy that a Trainer is given, wherever that stands.
struct NamedStrategy {
  std::string name{};         ///< empty: none is named
  bool names_cpu = false;     ///< `accelerator: ddp_cpu`
  bool is_elsewhere = false;  ///< by `accelerator` or `plugins`
};

/// Up to 1.6 a strategy could be the accelerator or a plugin, before 1.5 it had to be: that is
/// written into `strategy`. Refuses what the version does.
NamedStrategy take_strategy_name(Preparation& preparation, TrainerSpec& trainer,
                                 const Version& lightning);

}  // namespace lockstep
