#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/scenario/object.hpp"
#include "model/strategy/arguments.hpp"

namespace lockstep {

/// Adds an argument by its name; what a map holds, by the name of the map before its own.
void set_argument(const std::string& name, const PlainValue& value, StrategyArguments& arguments);

/// Removes it, and what a map of its name holds.
void remove_argument(const std::string& name, StrategyArguments& arguments);

/// By the name that StrategyArguments has: "config.optimizer.params.lr". Null: it is not there.
const PlainValue* find_argument_value(const Object& strategy, const std::string& name);

/// The same with its key, of what a map holds; null also where no map holds it.
const PlainEntry* find_argument_entry(const Object& strategy, const std::string& name);

/// What an object of a strategy says.
StrategyArguments strategy_arguments_of(const Object& strategy);

/// The reverse, every argument at one place.
Object object_of(const std::string& name, const StrategyArguments& arguments,
                 const SourcePlace& place);

/// A value that ranks differ in: `{on_ranks: [1], value: X, otherwise: Y}`, at any depth. Replaced
/// by what the rank has; -1: a rank that is not named.
PlainValue value_on_rank(const PlainValue& value, int64_t rank);
/// Adds the ranks that a value names. False where the form is not that.
bool add_named_ranks(const PlainValue& value, std::vector<int64_t>& ranks);

/// The object as a scenario writes it, with the value of an argument in place of its own. The name
/// is that of StrategyArguments: "fully_shard.mesh". An argument that it does not have is not
/// added.
std::string text_with(const Object& object,
                      const std::vector<std::pair<std::string, std::string>>& changed);

}  // namespace lockstep
