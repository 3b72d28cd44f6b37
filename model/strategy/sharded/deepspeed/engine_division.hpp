#pragma once

#include <cstdint>

namespace lockstep {

/// Where DeepSpeed divides summed gradients by the number of ranks (deepspeed/runtime/engine.py,
/// allreduce_bucket; zero/stage_1_and_2.py, gradient_reduction_w_predivide): behind the sum, unless
/// the configuration has a part or all of it before.
struct EngineDivision {
  bool comes_before = false;  ///< `prescale_gradients`
  double predivided = 1;      ///< `gradient_predivide_factor`

  double before_sum(int32_t ranks) const { return 1.0 / (comes_before ? ranks : predivided); }
  double behind_sum(int32_t ranks) const { return comes_before ? 1.0 : predivided / ranks; }
};

}  // namespace lockstep
