#pragma once

#include <vector>

#include "model/strategy/pipeline/schedule.hpp"

namespace lockstep {

/// A tensor that one rank of a pipeline sends to another, as one of the two sees it.
struct PipelineMessage {
  enum class Content : uint8_t { activation, gradient };
  Content content = Content::activation;
  bool is_send = false;
  int32_t stage = 0;  ///< of this rank: whose output or input it is, or the gradient of either
  int32_t micro_batch = 0;
  int32_t peer = 0;  ///< a rank of the pipeline
  bool operator==(const PipelineMessage&) const = default;
};

/// What a rank does next.
struct PipelineStep {
  enum class Kind : uint8_t {
    compute,
    exchange,        ///< one batch of messages; later computations come after it
    begin_sends,     ///< one batch of sends that nothing waits for until finish_sends
    begin_receives,  ///< one batch of receives, for each of which its computation waits
    finish_sends,    ///< later computations come after all sends that were begun
    // Of a stage whose parameters are divided (UNSHARD, RESHARD, REDUCE_GRAD); else nothing.
    gather_stage,
    free_stage,
    reduce_stage,  ///< its last backward has ended
  };
  Kind kind = Kind::compute;
  PipelineAction action{};  ///< of the last three kinds its stage alone
  std::vector<PipelineMessage> messages{};
  bool operator==(const PipelineStep&) const = default;
};

/// The steps of one rank. A schedule of single stages receives just before it computes, and fuses
/// what it sends with what it receives next in the same direction of time; one of several stages
/// begins each message apart, a receive when the other rank begins its send
/// (torch/distributed/pipelining/schedules.py, _step_microbatches of each class).
std::vector<PipelineStep> pipeline_steps(PipelineScheduleKind kind,
                                         const PipelineSchedule& schedule, int32_t rank);
/// Those of every rank.
std::vector<std::vector<PipelineStep>> pipeline_steps(PipelineScheduleKind kind,
                                                      const PipelineSchedule& schedule);
/// What a rank of an asynchronous pipeline does for some micro-batches while others are under way.
struct AsynchronousOrder {
  PipelineShape shape;
  /// Micro-batches are numbered modulo this; at least as many as are under way at once.
  int32_t numbers = 1;

  /// How many forwards a rank is ahead of its backwards.
  int32_t ahead(int32_t rank) const { return shape.ranks - 1 - rank; }
  /// Forwards of the next `count` micro-batches, each with the backward of one that came before;
  /// `before`: micro-batches since the pipeline was empty.
  std::vector<PipelineStep> steps(int32_t rank, int64_t before, int32_t count) const;
  /// The backwards that are left after so many micro-batches.
  std::vector<PipelineStep> drain(int32_t rank, int64_t micro_batches) const;
};

/// Each message apart, whatever the kind; by rank.
std::vector<std::vector<PipelineStep>> steps_by_messages(const PipelineSchedule& schedule);
/// Of one rank.
std::vector<PipelineStep> steps_by_messages(const PipelineSchedule& schedule, int32_t rank);
/// At the end of each slot one batch of what the rank and its neighbours make in it, whatever the
/// kind.
std::vector<PipelineStep> steps_by_slots(const PipelineSchedule& schedule, int32_t rank);

}  // namespace lockstep
