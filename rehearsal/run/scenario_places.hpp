#pragma once

#include "model/core/site.hpp"
#include "model/scenario/scenario.hpp"

namespace lockstep::cli {

/// Makes the keys of a scenario known as sites, with their path as description: findings may name
/// them beside statements.
void add_places_of_keys(const Scenario& scenario, Sites& sites);

}  // namespace lockstep::cli
