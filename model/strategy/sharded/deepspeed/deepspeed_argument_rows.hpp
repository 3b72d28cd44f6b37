#pragma once

#include "model/strategy/argument_table.hpp"

namespace lockstep {

/// Of DeepSpeedStrategy.
ArgumentRows deepspeed_arguments();

}  // namespace lockstep
