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

namespace {

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
  if (const auto repeated = journal.repeated_on(rank, 0); !repeated.empty()) {
    const std::vector<int64_t> times = StepSequence(repeated, steps).times();
    for (size_t step = 0; step < steps.size(); ++step) {
      steps[step].times = times[step];
    }
  }
  return steps;
}

}  // namespace lockstep::cli
