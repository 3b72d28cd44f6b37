#pragma once

#include "model/strategy/argument_table.hpp"

namespace lockstep {

/// Of FSDPStrategy.
ArgumentRows fsdp_arguments();
/// Of DDPFullyShardedNativeStrategy of Lightning 1.7 to 1.9.
ArgumentRows native_arguments();

}  // namespace lockstep
