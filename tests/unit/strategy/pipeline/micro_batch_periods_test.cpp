#include "model/strategy/pipeline/micro_batch_periods.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "model/strategy/megatron/megatron_steps.hpp"

namespace micro_batch_periods_test {

using namespace lockstep;

using Steps = std::vector<PipelineStep>;

PipelineShape shape_of(PipelineScheduleKind kind, int32_t ranks, int32_t stages_per_rank,
                       int32_t micro_batches) {
  return {ranks, stages_per_rank, micro_batches, placement_of(kind)};
}

Steps later(Steps steps, int32_t micro_batches) {
  for (PipelineStep& step : steps) {
    step.action.micro_batch += step.kind == PipelineStep::Kind::compute ? micro_batches : 0;
    for (PipelineMessage& message : step.messages) {
      message.micro_batch += micro_batches;
    }
  }
  return steps;
}

// Whether each period is the one before it for later micro-batches, and leaves a stage as many
// micro-batches under way as it found.
void check_periods(const Steps& steps, const MicroBatchPeriods& periods) {
  const auto part = [&](int64_t period) {
    const auto begin = steps.begin() + static_cast<std::ptrdiff_t>(periods.begin) +
                       period * static_cast<std::ptrdiff_t>(periods.length);
    return Steps(begin, begin + static_cast<std::ptrdiff_t>(periods.length));
  };
  REQUIRE(periods.end() <= steps.size());
  for (int64_t period = 1; period < periods.count; ++period) {
    REQUIRE(part(period) == later(part(period - 1), periods.micro_batches));
  }
  std::map<int32_t, int32_t> forwards;
  std::map<int32_t, int32_t> ends;
  for (const PipelineStep& step : part(0)) {
    if (step.kind == PipelineStep::Kind::compute) {
      forwards[step.action.stage] += step.action.work == PipelineWork::forward ? 1 : 0;
      ends[step.action.stage] += step.action.work == PipelineWork::backward ||
                                         step.action.work == PipelineWork::weight_gradient
                                     ? 1
                                     : 0;
    }
  }
  REQUIRE(forwards == ends);
  for (const auto& [stage, count] : forwards) {
    REQUIRE(count == periods.micro_batches);
  }
}

// The period with which a micro-batch begins is of the same micro-batch on every rank.
int32_t first_forward(const Steps& steps, const MicroBatchPeriods& periods) {
  return steps.at(periods.begin).action.micro_batch;
}

/// How many periods all ranks have; 0: none has some.
int64_t count_of(const PipelineShape& shape, const std::vector<Steps>& all) {
  const auto of_first = micro_batch_periods(shape, all.front(), all.front());
  for (const Steps& steps : all) {
    const auto own = micro_batch_periods(shape, all.front(), steps);
    REQUIRE(own.has_value() == of_first.has_value());
    if (own) {
      check_periods(steps, *own);
      REQUIRE(own->count == of_first->count);
      REQUIRE(own->micro_batches == of_first->micro_batches);
      REQUIRE(first_forward(steps, *own) == first_forward(all.front(), *of_first));
    }
  }
  return of_first ? of_first->count : 0;
}

TEST_CASE("1F1B repeats itself from the first rank's first backward to its last forward") {
  // Four ranks, 20 micro-batches: the first rank has run 4 forwards before its first backward, and
  // forwards 4 to 18 each have a backward behind them; the last one, 19, receives nothing more.
  const PipelineShape shape = shape_of(PipelineScheduleKind::one_forward_one_backward, 4, 1, 20);
  const auto steps =
      pipeline_steps(PipelineScheduleKind::one_forward_one_backward,
                     make_pipeline_schedule(PipelineScheduleKind::one_forward_one_backward, shape));
  CHECK(count_of(shape, steps) == 14);  // 5 to 18: the first that is like the one before it
  const auto first = micro_batch_periods(shape, steps[0], steps[0]);
  REQUIRE(first);
  CHECK(first->length == 3);  // a forward, an exchange, a backward: it has no stage before it
  CHECK(micro_batch_periods(shape, steps[0], steps[1])->length == 4);
  CHECK(first->micro_batches == 1);
  CHECK(first_forward(steps[0], *first) == 5);
  CHECK(first->begin_at(first->begin));
  CHECK_FALSE(first->begin_at(first->begin + 1));
  CHECK_FALSE(first->begin_at(first->end()));
  CHECK(first->left_from(first->begin + 3) == 13);
}

TEST_CASE("Megatron's interleaved schedule repeats itself by groups of micro-batches") {
  const PipelineShape shape{4, 2, 48, StagePlacement::loop};
  std::vector<Steps> all;
  for (int32_t rank = 0; rank < 4; ++rank) {
    all.push_back(megatron_steps(shape, rank));
  }
  // Of 12 groups the first rank has not filled the pipeline before the second has begun, the third
  // is the first to be compared with, and the last has the last backward of a stage.
  CHECK(count_of(shape, all) == 8);
  CHECK(micro_batch_periods(shape, all[0], all[0])->micro_batches == 4);
}

TEST_CASE("what only fills or only empties the pipeline does not repeat itself") {
  const PipelineShape shape = shape_of(PipelineScheduleKind::gpipe, 4, 1, 64);
  CHECK(count_of(shape,
                 pipeline_steps(PipelineScheduleKind::gpipe,
                                make_pipeline_schedule(PipelineScheduleKind::gpipe, shape))) == 0);
}

TEST_CASE("periods of every schedule are the same on all of its ranks") {
  int64_t with_periods = 0;
  for (const PipelineScheduleKind kind :
       {PipelineScheduleKind::one_forward_one_backward, PipelineScheduleKind::interleaved,
        PipelineScheduleKind::looped_breadth_first, PipelineScheduleKind::interleaved_zero_bubble,
        PipelineScheduleKind::zero_bubble_v, PipelineScheduleKind::dual_pipe_v}) {
    for (int32_t ranks = 1; ranks <= 8; ++ranks) {
      for (const int32_t chunks : {1, 2, 3, 4}) {
        for (const int32_t micro_batches : {1, 2, 7, 8, 16, 24, 40, 64}) {
          const PipelineShape shape = shape_of(kind, ranks, chunks, micro_batches);
          if (is_single_stage(kind) != (chunks == 1) || !why_no_schedule(kind, shape).empty()) {
            continue;
          }
          const auto steps = pipeline_steps(kind, make_pipeline_schedule(kind, shape));
          with_periods += count_of(shape, steps) > 0 ? 1 : 0;
        }
      }
    }
  }
  CHECK(with_periods > 50);
}

TEST_CASE("periods of Megatron's schedules are the same on all of its ranks") {
  for (int32_t ranks = 1; ranks <= 8; ++ranks) {
    for (const int32_t chunks : {1, 2, 4}) {
      for (const int32_t micro_batches : {1, 3, 8, 16, 40, 96}) {
        const PipelineShape shape{ranks, chunks, micro_batches, StagePlacement::loop};
        if (!why_no_megatron_schedule(shape).empty()) {
          continue;
        }
        std::vector<Steps> all;
        for (int32_t rank = 0; rank < ranks; ++rank) {
          all.push_back(megatron_steps(shape, rank));
        }
        const int64_t count = count_of(shape, all);
        // The last micro-batch of a stage is left, and one to compare the first with.
        const int64_t whole = chunks == 1 ? micro_batches - ranks - 1 : micro_batches / ranks - 4;
        CHECK((count > 0) == (whole >= 4));
      }
    }
  }
}

}  // namespace micro_batch_periods_test
