#pragma once

#include <array>

#include "model/strategy/argument_table.hpp"

namespace lockstep {

/// What the Trainer makes and hands to a strategy of Lightning: a script may give objects of its
/// own.
inline constexpr std::array trainer_objects{
    StrategyArgument{"accelerator", "", "null",
                     "an accelerator object; `accelerator` of the Trainer names one",
                     ArgumentUse::unmodelled},
    StrategyArgument{"parallel_devices", "", "null",
                     "the devices; `devices` of the Trainer names them", ArgumentUse::unmodelled},
    StrategyArgument{"cluster_environment", "", "null", "who starts processes; `launcher` names it",
                     ArgumentUse::unmodelled},
    StrategyArgument{"checkpoint_io", "", "null", "an object that writes checkpoints",
                     ArgumentUse::unmodelled},
    StrategyArgument{"precision_plugin", "", "null",
                     "a precision object; `precision` of the Trainer names one",
                     ArgumentUse::unmodelled},
};

}  // namespace lockstep
