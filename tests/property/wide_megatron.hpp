#pragma once

#include "tests/property/wide_case.hpp"

namespace lockstep::test {

/// A training under MegatronStrategy on several nodes. Draws.
WideCase wide_megatron(int micro_batches);

}  // namespace lockstep::test
