#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// What a rank computes for one micro-batch in one stage.
enum class PipelineWork : uint8_t {
  forward,
  backward,         ///< gradients of input and weights together
  input_gradient,   ///< the half that the stage before waits for
  weight_gradient,  ///< the half that nobody waits for
};

struct PipelineAction {
  PipelineWork work = PipelineWork::forward;
  int32_t stage = 0;  ///< of the whole pipeline
  int32_t micro_batch = 0;
  bool joined = false;  ///< with the action before it: messages of both begin behind this one
  bool operator==(const PipelineAction&) const = default;
};

/// What an action gives, and another waits for: the output of a stage, or the gradient of its
/// input.
struct PipelineResult {
  bool is_gradient = false;
  int32_t stage = 0;
  int32_t micro_batch = 0;
  auto operator<=>(const PipelineResult&) const = default;
};
/// Of so many stages.
std::vector<PipelineResult> inputs_of(const PipelineAction& action, int32_t stages);
/// Nothing: nobody waits for the gradients of weights.
std::optional<PipelineResult> result_of(const PipelineAction& action);

/// Which rank holds a stage.
enum class StagePlacement : uint8_t {
  loop,  ///< stage s is on rank s mod ranks
  v,     ///< two a rank: down the ranks and back again
};

struct PipelineShape {
  int32_t ranks = 1;
  int32_t stages_per_rank = 1;
  int32_t micro_batches = 1;
  StagePlacement placement = StagePlacement::loop;

  int32_t stages() const { return ranks * stages_per_rank; }
  int32_t rank_of(int32_t stage) const;
  /// The stages of a rank, ascending.
  std::vector<int32_t> stages_of(int32_t rank) const;
};

/// The schedules that torch.distributed.pipelining has, by its names, and two that never empty the
/// pipeline between steps.
enum class PipelineScheduleKind : uint8_t {
  gpipe,
  one_forward_one_backward,
  interleaved,
  looped_breadth_first,
  interleaved_zero_bubble,
  zero_bubble_v,
  dual_pipe_v,
  pipe_dream,                  ///< Narayanan et al. 2019: an update after every backward
  pipe_dream_double_buffered,  ///< 2BW, Narayanan et al. 2021: two versions of the weights
};

/// "GPipe", "1F1B", "Interleaved1F1B", "LoopedBFS", "InterleavedZeroBubble", "ZBVZeroBubble",
/// "DualPipeV", "PipeDream", "PipeDream-2BW"; any case, with or without "Schedule" before it.
/// Nothing: it is none of them.
std::optional<PipelineScheduleKind> pipeline_schedule_named(std::string_view name);
std::string_view name_of(PipelineScheduleKind kind);
/// One stage a rank, whose messages follow from what it does itself; else several, whose messages
/// follow from the slots of all ranks.
bool is_single_stage(PipelineScheduleKind kind);
/// Micro-batches stay under way from one step to the next.
bool is_asynchronous(PipelineScheduleKind kind);
StagePlacement placement_of(PipelineScheduleKind kind);

/// Why a schedule cannot be made in this shape, as torch says it; empty: it can.
std::string why_no_schedule(PipelineScheduleKind kind, const PipelineShape& shape);

/// What every rank computes, by time slots of equal length; nothing: the rank waits in that slot.
struct PipelineSchedule {
  PipelineShape shape;
  std::vector<std::vector<std::optional<PipelineAction>>> slots;  ///< by rank
};

/// Of an asynchronous kind: from an empty pipeline to an empty one, whatever the steps between.
/// Throws ContractViolation where why_no_schedule() has an answer. The order of every rank's
/// actions is that of torch/distributed/pipelining/schedules.py.
PipelineSchedule make_pipeline_schedule(PipelineScheduleKind kind, const PipelineShape& shape);

/// The forwards of an evaluation.
PipelineSchedule forward_schedule(const PipelineShape& shape);

/// The largest number of micro-batches of its stages whose forward a rank has run and whose
/// activations it still needs: until the backward, or until the gradients of the weights.
int32_t most_in_flight(const PipelineSchedule& schedule, int32_t rank);

/// When the last rank ends, in units of the caller, if nothing takes time but the actions and every
/// rank computes as early as its order and its inputs allow.
struct PipelineDurations {
  double forward = 1;
  double backward = 2;
  double input_gradient = 1;
  double weight_gradient = 1;
};
double makespan(const PipelineSchedule& schedule, const PipelineDurations& durations);

/// Empty: every rank can run its actions in their order, each with its inputs there. Else the first
/// action that never gets them.
std::optional<PipelineAction> first_that_waits_for_ever(const PipelineSchedule& schedule);

}  // namespace lockstep
