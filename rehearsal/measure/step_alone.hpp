#pragma once

#include "rehearsal/rehearsal.hpp"
#include "rehearsal/rehearse.hpp"

namespace lockstep::cli {

/// Where each step ends an epoch, checkpoints and evaluations lie between any two steps, and no two
/// ends of steps tell what a step takes. Then a short run of a longer epoch does: it replaces what
/// was measured of the steady step, and nothing else. After measure().
void measure_step_alone(const RehearseRequest& request, Rehearsal& rehearsal);

}  // namespace lockstep::cli
