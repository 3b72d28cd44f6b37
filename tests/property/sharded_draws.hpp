#pragma once

#include <cstdint>
#include <vector>

#include "tests/property/draws.hpp"
#include "tests/property/sharded_case.hpp"

namespace lockstep::test {

/// Sizes, optimizer and steps of any training.
ShardedCase any_training();
void draw_horovod(ShardedCase& training);
void draw_gradient_allreduce(ShardedCase& training);
void draw_synchronous_server(ShardedCase& training);

}  // namespace lockstep::test
