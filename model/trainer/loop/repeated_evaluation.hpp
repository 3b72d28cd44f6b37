#pragma once

#include <cstdint>
#include <vector>

#include "model/trainer/loop/repeated_loop.hpp"

namespace lockstep {

/// Batches of one pass over the data of a validation within a fit that do the same as those before
/// them. It tells the world, and goes on behind the batches that the world leaves out.
class RepeatedEvaluation {
 public:
  /// `batches`: of the pass. `ahead`: batches that are prepared. `kind`: of its batches, in all
  /// passes that do the same.
  RepeatedEvaluation(Training& training, int64_t batches, int64_t ahead, int64_t kind);

  /// Said before batch `number`. Gives how many batches are left out.
  int64_t left_out(int64_t number);

 private:
  RepeatedLoop loop_;
  int64_t first_ = 0;  ///< batch that may repeat one before it
  int64_t last_ = 0;
  int64_t kind_ = 0;
  std::vector<int64_t> decisions_;  ///< empty: there are none
};

}  // namespace lockstep
