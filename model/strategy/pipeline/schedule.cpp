#include "model/strategy/pipeline/schedule.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <utility>

#include "model/core/ensure.hpp"
#include "model/strategy/pipeline/schedule_tables.hpp"

namespace lockstep {

std::vector<PipelineResult> inputs_of(const PipelineAction& action, int32_t stages) {
  const auto& [work, stage, micro_batch, joined] = action;
  if (work == PipelineWork::forward) {
    return stage == 0 ? std::vector<PipelineResult>()
                      : std::vector<PipelineResult>{{false, stage - 1, micro_batch}};
  }
  if (work == PipelineWork::weight_gradient) {
    return {{true, stage, micro_batch}};
  }
  std::vector<PipelineResult> inputs{{false, stage, micro_batch}};
  if (stage + 1 < stages) {
    inputs.push_back({true, stage + 1, micro_batch});
  }
  return inputs;
}

std::optional<PipelineResult> result_of(const PipelineAction& action) {
  if (action.work == PipelineWork::weight_gradient) {
    return std::nullopt;
  }
  return PipelineResult{action.work != PipelineWork::forward, action.stage, action.micro_batch};
}

int32_t PipelineShape::rank_of(int32_t stage) const {
  const int32_t turn = stage / ranks;
  const int32_t place = stage % ranks;
  return placement == StagePlacement::v && turn % 2 == 1 ? ranks - 1 - place : place;
}

std::vector<int32_t> PipelineShape::stages_of(int32_t rank) const {
  std::vector<int32_t> own;
  for (int32_t stage = 0; stage < stages(); ++stage) {
    if (rank_of(stage) == rank) {
      own.push_back(stage);
    }
  }
  return own;
}

namespace {

using Kind = PipelineScheduleKind;

struct NamedSchedule {
  Kind kind;
  std::string_view name;
  std::string_view class_name;
};

constexpr std::array<NamedSchedule, 9> named_schedules{{
    {Kind::gpipe, "GPipe", "ScheduleGPipe"},
    {Kind::one_forward_one_backward, "1F1B", "Schedule1F1B"},
    {Kind::interleaved, "Interleaved1F1B", "ScheduleInterleaved1F1B"},
    {Kind::looped_breadth_first, "LoopedBFS", "ScheduleLoopedBFS"},
    {Kind::interleaved_zero_bubble, "InterleavedZeroBubble", "ScheduleInterleavedZeroBubble"},
    {Kind::zero_bubble_v, "ZBVZeroBubble", "ScheduleZBVZeroBubble"},
    {Kind::dual_pipe_v, "DualPipeV", "ScheduleDualPipeV"},
    {Kind::pipe_dream, "PipeDream", "PipeDream"},
    {Kind::pipe_dream_double_buffered, "PipeDream-2BW", "PipeDream2BW"},
}};

bool are_same(std::string_view one, std::string_view other) {
  return std::ranges::equal(one, other, [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  });
}

}  // namespace

std::optional<PipelineScheduleKind> pipeline_schedule_named(std::string_view name) {
  for (const NamedSchedule& known : named_schedules) {
    if (are_same(name, known.name) || are_same(name, known.class_name)) {
      return known.kind;
    }
  }
  return std::nullopt;
}

std::string_view name_of(PipelineScheduleKind kind) {
  return named_schedules[static_cast<size_t>(kind)].name;
}

bool is_single_stage(PipelineScheduleKind kind) {
  return kind == Kind::gpipe || kind == Kind::one_forward_one_backward || is_asynchronous(kind);
}

bool is_asynchronous(PipelineScheduleKind kind) {
  return kind == Kind::pipe_dream || kind == Kind::pipe_dream_double_buffered;
}

StagePlacement placement_of(PipelineScheduleKind kind) {
  const bool is_v = kind == Kind::zero_bubble_v || kind == Kind::dual_pipe_v;
  return is_v ? StagePlacement::v : StagePlacement::loop;
}

std::string why_no_schedule(PipelineScheduleKind kind, const PipelineShape& shape) {
  const int32_t micro_batches = shape.micro_batches;
  if (micro_batches < 1) {
    return "n_microbatches must be at least 1";
  }
  if (is_single_stage(kind) && shape.stages_per_rank != 1) {
    return fmt::format("{} takes one stage per rank, here {}", name_of(kind),
                       shape.stages_per_rank);
  }
  if (placement_of(kind) == StagePlacement::v && shape.stages_per_rank != 2) {
    return fmt::format("ZBV requires exactly 2 stages per rank, here {}", shape.stages_per_rank);
  }
  if (kind == Kind::one_forward_one_backward && micro_batches < shape.ranks) {
    return fmt::format(
        "Number of microbatches ({}) must be greater than or equal to the number of "
        "stages ({}).",
        micro_batches, shape.ranks);
  }
  if (kind == Kind::dual_pipe_v && micro_batches < shape.stages()) {
    return fmt::format(
        "DualPipeV requires at least as many microbatches as stages, but got {} microbatches and "
        "{} stages.",
        micro_batches, shape.stages());
  }
  const bool has_rounds = kind == Kind::interleaved || kind == Kind::interleaved_zero_bubble;
  const int32_t rounds = std::max(1, micro_batches / shape.ranks);
  if (has_rounds && micro_batches % rounds != 0) {
    return fmt::format(
        "requires the number of microbatches to be a multiple of the number of "
        "rounds ({}), but got {}.",
        rounds, micro_batches);
  }
  return "";
}

PipelineSchedule make_pipeline_schedule(PipelineScheduleKind kind, const PipelineShape& shape) {
  ensure(why_no_schedule(kind, shape).empty(), "a schedule that can be made");
  PipelineSchedule schedule{shape, {}};
  for (int32_t rank = 0; rank < shape.ranks; ++rank) {
    switch (kind) {
      case Kind::gpipe: schedule.slots.push_back(gpipe_slots(shape, rank)); break;
      case Kind::one_forward_one_backward:
      case Kind::pipe_dream:
      case Kind::pipe_dream_double_buffered:
        schedule.slots.push_back(one_forward_one_backward_slots(shape, rank));
        break;
      case Kind::interleaved: schedule.slots.push_back(interleaved_slots(shape, rank)); break;
      case Kind::looped_breadth_first:
        schedule.slots.push_back(breadth_first_slots(shape, rank));
        break;
      case Kind::interleaved_zero_bubble:
        schedule.slots.push_back(interleaved_zero_bubble_slots(shape, rank));
        break;
      case Kind::zero_bubble_v: schedule.slots.push_back(zero_bubble_v_slots(shape, rank)); break;
      case Kind::dual_pipe_v: schedule.slots.push_back(dual_pipe_v_slots(shape, rank)); break;
    }
  }
  if (!is_single_stage(kind)) {
    wait_for_inputs(schedule);
  }
  return schedule;
}

PipelineSchedule forward_schedule(const PipelineShape& shape) {
  PipelineSchedule schedule{shape, {}};
  for (int32_t rank = 0; rank < shape.ranks; ++rank) {
    schedule.slots.push_back(forward_slots(shape, rank));
  }
  wait_for_inputs(schedule);
  return schedule;
}

int32_t most_in_flight(const PipelineSchedule& schedule, int32_t rank) {
  int32_t now = 0;
  int32_t most = 0;
  for (const std::optional<PipelineAction>& action : schedule.slots[static_cast<size_t>(rank)]) {
    if (!action || action->work == PipelineWork::input_gradient) {
      continue;
    }
    now += action->work == PipelineWork::forward ? 1 : -1;
    most = std::max(most, now);
  }
  return most;
}

namespace {

double duration_of(PipelineWork work, const PipelineDurations& durations) {
  switch (work) {
    case PipelineWork::forward: return durations.forward;
    case PipelineWork::backward: return durations.backward;
    case PipelineWork::input_gradient: return durations.input_gradient;
    case PipelineWork::weight_gradient: return durations.weight_gradient;
  }
  return 0;
}

struct Played {
  double end = 0;
  std::optional<PipelineAction> waiting{};
};

// Round robin over the ranks until all have ended, or none goes on.
Played play(const PipelineSchedule& schedule, const PipelineDurations& durations) {
  std::map<PipelineResult, double> ends;
  std::vector<size_t> next(schedule.slots.size());
  std::vector<double> now(schedule.slots.size());
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (size_t rank = 0; rank < schedule.slots.size(); ++rank) {
      const auto& slots = schedule.slots[rank];
      for (; next[rank] < slots.size(); ++next[rank]) {
        const std::optional<PipelineAction>& action = slots[next[rank]];
        if (!action) {
          continue;
        }
        const std::vector<PipelineResult> inputs = inputs_of(*action, schedule.shape.stages());
        if (!std::ranges::all_of(inputs, [&](const auto& each) { return ends.contains(each); })) {
          break;
        }
        for (const PipelineResult& input : inputs) {
          now[rank] = std::max(now[rank], ends.at(input));
        }
        now[rank] += duration_of(action->work, durations);
        if (const auto result = result_of(*action)) {
          ends[*result] = now[rank];
        }
        goes_on = true;
      }
    }
  }
  Played played{*std::ranges::max_element(now)};
  for (size_t rank = 0; rank < schedule.slots.size() && !played.waiting; ++rank) {
    if (next[rank] < schedule.slots[rank].size()) {
      played.waiting = schedule.slots[rank][next[rank]];
    }
  }
  return played;
}

}  // namespace

double makespan(const PipelineSchedule& schedule, const PipelineDurations& durations) {
  return play(schedule, durations).end;
}

std::optional<PipelineAction> first_that_waits_for_ever(const PipelineSchedule& schedule) {
  return play(schedule, {}).waiting;
}

}  // namespace lockstep
