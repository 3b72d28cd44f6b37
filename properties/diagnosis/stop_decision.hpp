#pragma once

#include <optional>
#include <string>

#include "properties/diagnosis/decision.hpp"

namespace lockstep {

/// What made two ranks leave a training loop apart by `trainer.should_stop`, before this row of the
/// caller: the last decision that they took otherwise and that `should_stop` depends on. That is
/// the statement itself, an `if` or `repeat` around it, or else one in its hook (a `return`); where
/// none is known, the loop's own look. Nothing where they have not left a loop apart.
std::optional<Decision> decision_to_stop(const Sites& sites, const Decisions& caller, int64_t row,
                                         const Decisions& other);

/// What a rank has decided by its own data when it stops, as one condition: of the `should_stop`
/// that depends on this decision, its value and the `if`s around it. Empty: it depends on none.
std::string stop_condition(const Sites& sites, SiteId decision);

}  // namespace lockstep
