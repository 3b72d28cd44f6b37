#pragma once

#include <vector>

#include "model/program/rank.hpp"
#include "model/strategy/plan.hpp"

namespace lockstep {

/// A tensor that an optimizer updates. Its state is allocated at the first step, as in torch.
struct OptimizedTensor {
  Slice value;
  Slice gradient;  ///< no_buffer: this tensor got no gradient and is left alone
  std::vector<Slice> state;
  int64_t steps = 0;
};

/// Slices of state that the optimizer keeps for every element: none, momentum, or two moments.
int state_tensors(const OptimizerPlan& plan);

/// Updates the tensors on the compute stream of the first device. With `numerics` one kernel a
/// tensor; without, one kernel for all (torch's foreach implementation), priced by the memory it
/// moves.
Ticket optimizer_step(Rank& rank, const OptimizerPlan& plan, bool numerics,
                      std::vector<OptimizedTensor*> tensors, SiteId site, Ticket after);

}  // namespace lockstep
