#pragma once

#include "io/scenario/reader/reader.hpp"
#include "model/scenario/scenario.hpp"

namespace lockstep {

/// Complains about names that are certain to be unbound when a statement is reached, about
/// functions that do not exist, and about optimizers, metrics and modules that no section names.
/// A name that only some path binds is left to the run, where it is a finding.
void check_names(Reader& reader, const Scenario& scenario);
/// The same of what schedulers have as a factor.
void check_rate_factors(Reader& reader, const Scenario& scenario);

}  // namespace lockstep
