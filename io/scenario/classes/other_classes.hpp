#pragma once

#include <string_view>
#include <vector>

#include "io/scenario/classes/catalogue.hpp"

namespace lockstep {

/// Names that torch, Lightning or a well-known library beside them has, and that the catalogue does
/// not hold: they are not modelled, which is no mistake of whoever writes them. Or a strategy that
/// the program adds.
bool is_other_class(ObjectRole role, std::string_view name);
/// A function of torch that expressions do not have.
bool is_other_function(std::string_view name);

/// What to do where no name is near: a class of the user's own. Empty for most roles.
std::string_view remedy_of_own_class(ObjectRole role);

/// Every name of the role that is known, modelled or not: for "did you mean".
std::vector<std::string_view> known_classes(ObjectRole role);

}  // namespace lockstep
