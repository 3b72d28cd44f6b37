#pragma once

#include <string_view>

#include "model/trainer/prepare/prepare_parts.hpp"

namespace lockstep {

/// Reads an optimizer with the defaults and the arguments of its class.
void prepare_optimizer(Preparation& preparation, const Object& optimizer, OptimizerPlan& plan);

/// An argument that is a number.
void set_number(Preparation& preparation, const ObjectArgument& argument, double& number);
/// Arguments of a scenario that no class of torch has: they say how a script scales its rate.
bool speaks_of_scaling(std::string_view argument);

}  // namespace lockstep
