// The optimizer steps that the journal of a rank shows.
#include <algorithm>
#include <utility>

#include "model/strategy/local_model/replica_sites.hpp"
#include "model/strategy/pipeline/pipeline_sites.hpp"
#include "rehearsal/measure/measure.hpp"
#include "rehearsal/measure/step_sequence.hpp"

namespace lockstep::cli {

namespace {

bool begins_forward(const Row& row) {
  return row.row == RowKind::op && row.kind == OpKind::compute &&
         (row.kernel == Kernel::layer_forward || row.kernel == Kernel::loss_forward ||
          (row.kernel == Kernel::timed && row.site == site_id(replica_sites::layer_forward)));
}

}  // namespace

bool is_optimizer(const Row& row) {
  return row.row == RowKind::op && row.kind == OpKind::compute &&
         (is_update(row.kernel) || row.kernel == Kernel::squared_norm ||
          row.kernel == Kernel::clip_by_norm || row.kernel == Kernel::clip_by_value ||
          row.kernel == Kernel::unscale);
}

std::span<const RepeatedRows> repeated_of(const Journal& journal, int32_t rank) {
  return journal.repeated.empty() ? std::span<const RepeatedRows>()
                                  : journal.repeated[static_cast<size_t>(rank)];
}

namespace {

// What is left out repeats the steps that end within it.
void count_repeated(const Journal& journal, int32_t rank, std::vector<StepMark>& steps) {
  const std::span<const RepeatedRows> repeated = repeated_of(journal, rank);
  const std::vector<std::map<Time, int64_t>> lengths = StepSequence(repeated, steps).lengths();
  for (size_t step = 0; step < steps.size(); ++step) {
    steps[step].times = 0;
    for (const auto& [length, times] : lengths[step]) {
      steps[step].lengths.emplace_back(length, times);
      steps[step].times += times;
    }
  }
  const auto ends_in = [](const RepeatedRows& rows, const StepMark& step) {
    return rows.begin < step.rows.end && step.rows.end <= rows.end;
  };
  for (const RepeatedRows& rows : repeated) {
    const bool has_steps =
        std::ranges::any_of(steps, [&](const StepMark& step) { return ends_in(rows, step); });
    for (StepMark& step : steps) {  // a validation makes the step around it longer
      if (has_steps && rows.row < step.rows.end) {
        step.left_out += rows.period * rows.periods;
      }
    }
  }
}

bool is_mark_of_step(const Row& row) {
  return row.row == RowKind::choice && row.tag == static_cast<int32_t>(ChoiceKind::step);
}

}  // namespace

std::vector<StepMark> steps_of(const Journal& journal, int32_t rank) {
  std::vector<StepMark> steps;
  const LaneJournal& lane = journal.lane(rank, 0);
  int64_t index = 0;
  int64_t begin = 0;
  bool fresh = true;
  bool has_begun = false;
  uint32_t last = 0;
  lane.for_each([&](const Row& row) {
    last = row.row == RowKind::op ? row.sequence : last;
    if (fresh && is_mark_of_step(row)) {
      steps.push_back({{begin, index + 1}, lane.completion(last).finish});
      fresh = false;
      begin = index + 1;
    } else if (is_optimizer(row) && row.site != site_id(pipeline_sites::update_of_stage)) {
      if (fresh) {
        steps.push_back({{begin, index + 1}, {}});
      }
      fresh = false;
      steps.back().rows.end = index + 1;
      steps.back().finish = std::max(steps.back().finish, lane.completion(row.sequence).finish);
      begin = index + 1;
    } else if (begins_forward(row)) {
      if (!std::exchange(has_begun, true)) {  // an update before all forwards is one of set-up
        steps.clear();
        begin = 0;
      }
      fresh = true;
    }
    ++index;
  });
  count_repeated(journal, rank, steps);
  return steps;
}

}  // namespace lockstep::cli
