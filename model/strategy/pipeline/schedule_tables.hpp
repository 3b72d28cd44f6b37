#pragma once

#include <optional>
#include <vector>

#include "model/strategy/pipeline/schedule.hpp"

namespace lockstep {

using PipelineSlots = std::vector<std::optional<PipelineAction>>;

// What one rank does, in slots (torch/distributed/pipelining/schedules.py).
/// Forwards alone, for an evaluation: every micro-batch through one stage, then through the next.
PipelineSlots forward_slots(const PipelineShape& shape, int32_t rank);
PipelineSlots gpipe_slots(const PipelineShape& shape, int32_t rank);
PipelineSlots one_forward_one_backward_slots(const PipelineShape& shape, int32_t rank);
PipelineSlots interleaved_slots(const PipelineShape& shape, int32_t rank);
PipelineSlots breadth_first_slots(const PipelineShape& shape, int32_t rank);
/// Without the slots in which the rank waits for others.
PipelineSlots interleaved_zero_bubble_slots(const PipelineShape& shape, int32_t rank);
PipelineSlots zero_bubble_v_slots(const PipelineShape& shape, int32_t rank);
PipelineSlots dual_pipe_v_slots(const PipelineShape& shape, int32_t rank);

/// Which results of a schedule are there.
class PipelineResults {
 public:
  explicit PipelineResults(const PipelineShape& shape)
      : micro_batches_(static_cast<size_t>(shape.micro_batches)),
        is_there_(2 * static_cast<size_t>(shape.stages()) * micro_batches_) {}

  void insert(const PipelineResult& result) { is_there_[index_of(result)] = true; }
  bool contains(const PipelineResult& result) const { return is_there_[index_of(result)]; }

 private:
  size_t index_of(const PipelineResult& result) const {
    const size_t row = 2 * static_cast<size_t>(result.stage) + (result.is_gradient ? 1 : 0);
    return row * micro_batches_ + static_cast<size_t>(result.micro_batch);
  }

  size_t micro_batches_;
  std::vector<bool> is_there_;
};

/// Puts empty slots before actions whose inputs other ranks make in the same slot or later.
void wait_for_inputs(PipelineSchedule& schedule);

}  // namespace lockstep
