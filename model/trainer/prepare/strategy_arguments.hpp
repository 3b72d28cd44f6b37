#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/scenario/object.hpp"
#include "model/strategy/arguments.hpp"

namespace lockstep {

/// Adds an argument by its name; what a map holds, by the name of the map before its own.
void set_argument(const std::string& name, const PlainValue& value, StrategyArguments& arguments);

/// What an object of a strategy says.
StrategyArguments strategy_arguments_of(const Object& strategy);

/// The object as a scenario writes it, with the value of an argument in place of its own. The name
/// is that of StrategyArguments: "fully_shard.mesh". An argument that it does not have is not
/// added.
std::string text_with(const Object& strategy,
                      const std::vector<std::pair<std::string, std::string>>& changed);

}  // namespace lockstep
