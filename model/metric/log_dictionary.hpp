#pragma once

#include "model/scenario/scenario.hpp"

namespace lockstep {

/// Spells out `log_dict: {dictionary: NAME}` where NAME is what `compute`, or `update` with `as`,
/// has given of a collection: one key per member, of the value `NAME['KEY']`. The keys of a program
/// are then known before it runs. Collections that are no metrics stay as they are.
void spell_out_dictionaries(Scenario& scenario);

}  // namespace lockstep
