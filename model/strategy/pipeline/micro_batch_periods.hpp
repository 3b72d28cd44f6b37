#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "model/strategy/pipeline/pipeline_steps.hpp"

namespace lockstep {

/// Where the steps of a rank come again and again, each time for later micro-batches: the steady
/// part of a schedule, in which every stage has as many forwards as backwards.
struct MicroBatchPeriods {
  size_t begin = 0;           ///< the step with which the first begins
  size_t length = 0;          ///< steps of one
  int64_t count = 0;          ///< that follow one another, the same ones on all ranks
  int32_t micro_batches = 1;  ///< by which one is further than the one before

  /// One of them begins with this step.
  bool begin_at(size_t step) const {
    return step >= begin && step < end() && (step - begin) % length == 0;
  }
  /// How many are left, that which begins with this step included.
  int64_t left_from(size_t step) const { return static_cast<int64_t>((end() - step) / length); }
  size_t end() const { return begin + length * static_cast<size_t>(count); }
};

/// The periods of a rank with the steps `own`, which are those that the first rank of its pipeline
/// has as well: of all ranks, that one begins to repeat itself last. Nothing: too few to be left
/// out, or its steps do not repeat themselves.
std::optional<MicroBatchPeriods> micro_batch_periods(const PipelineShape& shape,
                                                     std::span<const PipelineStep> of_first_rank,
                                                     std::span<const PipelineStep> own);

}  // namespace lockstep
