#pragma once

#include "model/strategy/registry.hpp"

namespace lockstep {

/// What the sections `optimizer` and `scheduler` of a DeepSpeed configuration make (engine.py,
/// _configure_basic_optimizer and _scheduler_from_config). Throws what the engine raises, and
/// UnmodelledArgument for classes that are not modelled. The keys are those of today.
ConfiguredObjects deepspeed_objects(const StrategyArguments& arguments);
/// A section `scheduler` without `type`, of which the engine makes nothing.
bool has_unnamed_scheduler(const StrategyArguments& arguments);

}  // namespace lockstep
