#include "model/strategy/pipeline/micro_batch_periods.hpp"

#include <algorithm>
#include <map>
#include <vector>

namespace lockstep {

namespace {

using Steps = std::span<const PipelineStep>;

/// With fewer nothing can be left out: one shows what comes, one confirms it, one is run behind.
constexpr int64_t fewest_periods = 4;

/// Where the forwards of the first stage of a rank are among its steps, by micro-batch.
std::vector<size_t> forwards_of_first_stage(Steps steps) {
  std::vector<size_t> forwards;
  std::optional<int32_t> first;
  for (size_t at = 0; at < steps.size(); ++at) {
    const PipelineAction& action = steps[at].action;
    if (steps[at].kind != PipelineStep::Kind::compute || action.work != PipelineWork::forward) {
      continue;
    }
    first = first.value_or(action.stage);
    if (action.stage == *first) {
      forwards.push_back(at);
    }
  }
  return forwards;
}

bool is_later(const PipelineStep& step, const PipelineStep& before, int32_t by) {
  PipelineStep expected = before;
  expected.action.micro_batch += expected.kind == PipelineStep::Kind::compute ? by : 0;
  for (PipelineMessage& message : expected.messages) {
    message.micro_batch += by;
  }
  return step == expected;
}

/// Whether the steps from one place on are those before them, for later micro-batches.
bool repeats(Steps steps, size_t begin, size_t length, int32_t micro_batches) {
  if (begin < length || begin + length > steps.size()) {
    return false;
  }
  for (size_t at = begin; at < begin + length; ++at) {
    if (!is_later(steps[at], steps[at - length], micro_batches)) {
      return false;
    }
  }
  return true;
}

/// Whether each stage of the rank takes as many micro-batches forward as it is done with: what it
/// has more of is kept in memory, so that no two periods would be alike.
bool takes_all_stages(Steps period, Steps steps, int32_t micro_batches) {
  struct Count {
    int32_t forwards = 0;
    int32_t ends = 0;
  };
  std::map<int32_t, Count> of_stages;
  for (const PipelineStep& step : steps) {
    if (step.kind == PipelineStep::Kind::compute) {
      of_stages[step.action.stage];
    }
  }
  for (const PipelineStep& step : period) {
    if (step.kind == PipelineStep::Kind::compute) {
      Count& count = of_stages[step.action.stage];
      count.forwards += step.action.work == PipelineWork::forward ? 1 : 0;
      count.ends += step.action.work == PipelineWork::backward ||
                            step.action.work == PipelineWork::weight_gradient
                        ? 1
                        : 0;
    }
  }
  return std::ranges::all_of(of_stages, [micro_batches](const auto& stage) {
    return stage.second.forwards == micro_batches && stage.second.ends == micro_batches;
  });
}

/// Periods by the micro-batch with which they begin, in units of `each`.
struct Range {
  int64_t first = 0;
  int64_t end = 0;
  size_t begin = 0;
  size_t length = 0;
};

Range range_of(Steps steps, int32_t each) {
  const std::vector<size_t> forwards = forwards_of_first_stage(steps);
  const auto step = static_cast<size_t>(each);
  const size_t periods = forwards.size() / step;
  if (periods < 3) {
    return {};
  }
  const auto begin_of = [&](size_t period) { return forwards[period * step]; };
  Range range;
  range.length = begin_of(periods - 2) - begin_of(periods - 3);
  size_t end = periods - 1;  // the last has the last backward of some stage
  while (end > 1 && !repeats(steps, begin_of(end - 1), range.length, each)) {
    --end;
  }
  size_t first = end;
  while (first > 1 && begin_of(first - 1) - begin_of(first - 2) == range.length &&
         repeats(steps, begin_of(first - 1), range.length, each)) {
    --first;
  }
  if (first == end ||
      !takes_all_stages(steps.subspan(begin_of(first), range.length), steps, each)) {
    return {};
  }
  range.first = static_cast<int64_t>(first);
  range.end = static_cast<int64_t>(end);
  range.begin = begin_of(first);
  return range;
}

}  // namespace

// A rank of several stages may take as many micro-batches through one as there are ranks before it
// turns to the next.
std::optional<MicroBatchPeriods> micro_batch_periods(const PipelineShape& shape,
                                                     Steps of_first_rank, Steps own) {
  for (const int32_t each : {1, shape.ranks}) {
    const Range all = range_of(of_first_rank, each);
    if (all.end - all.first < fewest_periods) {
      continue;
    }
    const Range range = range_of(own, each);
    if (range.first > all.first || range.end < all.end) {
      return std::nullopt;
    }
    const auto later = static_cast<size_t>(all.first - range.first);
    return MicroBatchPeriods{range.begin + later * range.length, range.length, all.end - all.first,
                             each};
  }
  return std::nullopt;
}

}  // namespace lockstep
