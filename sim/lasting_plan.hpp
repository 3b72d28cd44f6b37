#pragma once

#include <vector>

#include "sim/cost.hpp"

namespace lockstep::sim {

/// The plan on the links of `modelled` that takes `fixed` and then keeps its slowest link busy for
/// `on_links`, where it is alone. Without links it takes the sum.
TransferPlan lasting(const TransferPlan& modelled, Time fixed, Time on_links,
                     const std::vector<BytesPerSecond>& capacities);

}  // namespace lockstep::sim
