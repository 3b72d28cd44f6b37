#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "explain/explain_keys.hpp"
#include "io/scenario/classes/catalogue.hpp"

namespace lockstep::cli {

/// The roles whose classes have pages.
std::vector<ObjectRole> explained_roles();
/// The page of a class ("EarlyStopping", "torchrun") or of an argument that the scenario's language
/// adds to a role ("optimizer.scaling", "SGD.scaling", or alone).
std::optional<KeyPage> find_class_page(std::string_view name);
/// "optimizer.scaling" ..
std::vector<std::string> added_argument_names();

}  // namespace lockstep::cli
