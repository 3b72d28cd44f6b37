#pragma once

#include <cstdint>

#include "model/trainer/loop/counted_decisions.hpp"
#include "model/trainer/loop/decided_windows.hpp"
#include "model/trainer/loop/repeated_loop.hpp"

namespace lockstep {

/// Batches of one pass over the data of a validation within a fit that do the same as those before
/// them. It tells the world, and goes on behind the batches that the world leaves out.
class RepeatedEvaluation final : PeriodKinds {
 public:
  struct Pass {
    const LoaderSettings& loader;
    int64_t batches = 0;
    int64_t ahead = 0;  ///< batches that are prepared
    int64_t kind = 0;   ///< of its batches, in all passes that do the same
  };
  RepeatedEvaluation(Training& training, const Pass& pass, CountedDecisions& decisions);

  /// Said before batch `number`. Gives how many batches are left out.
  int64_t left_out(int64_t number);

 private:
  int64_t kind_of(int64_t batch) const override;
  int64_t alike_from(int64_t batch) const override;

  Training& training_;
  RepeatedLoop loop_;
  DecidedWindows decided_;
  int64_t first_ = 0;  ///< batch that may repeat one before it
  int64_t last_ = 0;
  int64_t number_ = 0;  ///< of the batch that begins
  int64_t kind_ = 0;
};

}  // namespace lockstep
