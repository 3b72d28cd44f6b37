#pragma once

#include "model/core/site.hpp"
#include "model/scenario/program_spec.hpp"

namespace lockstep {

/// Names a statement by its place in the scenario, or by its keyword where it has none.
SiteId site_of(const Statement& statement);
/// Names the place of an expression's part, such as `unknown`.
SiteId site_of(const SourcePlace& place);

/// Every statement of every hook, each with the `if` or `repeat` that directly encloses it.
Sites sites_of(const ProgramSpec& program);

}  // namespace lockstep
