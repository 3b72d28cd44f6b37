#include "rehearsal/measure/pipeline_times.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "model/strategy/local_model/replica_sites.hpp"
#include "model/strategy/pipeline/pipeline_marks.hpp"
#include "rehearsal/measure/breakdown.hpp"
#include "rehearsal/measure/steady_step.hpp"
#include "rehearsal/measure/step_samples.hpp"

namespace lockstep::cli {

namespace {

bool is_work_of_layer(const Row& row) {
  if (row.kind != OpKind::compute) {
    return false;
  }
  return std::ranges::any_of(std::array{replica_sites::layer_forward, replica_sites::recompute,
                                        replica_sites::loss_forward, replica_sites::loss_backward,
                                        replica_sites::layer_backward},
                             [&row](std::string_view site) { return row.site == site_id(site); });
}

/// Actions of a rank among the rows of one step.
std::vector<TimedAction> actions_in(const Journal& journal, int32_t rank, const RowRange& rows) {
  std::vector<TimedAction> actions;
  const LaneJournal& lane = journal.lane(rank, 0);
  int64_t index = -1;
  bool has_begun = false;  // some kernel of the last action was seen
  lane.for_each([&](const Row& row) {
    ++index;
    if (index < rows.begin || index >= rows.end || row.row != RowKind::op) {
      return;
    }
    const auto marked = row.kind == OpKind::event ? marked_action(row.site, row.tag) : std::nullopt;
    if (marked) {
      if (!has_begun && !actions.empty()) {
        actions.pop_back();  // a stage without a kernel
      }
      actions.push_back({rank, *marked});
      has_begun = false;
    } else if (!actions.empty() && is_work_of_layer(row)) {
      const Completion done = lane.completion(row.sequence);
      TimedAction& action = actions.back();
      action.start = has_begun ? std::min(action.start, done.start) : done.start;
      action.finish = std::max(action.finish, done.finish);
      has_begun = true;
    }
  });
  if (!has_begun && !actions.empty()) {
    actions.pop_back();
  }
  return actions;
}

void add_work(const TimedAction& action, TimesOfPipelineRank& rank) {
  const Time time = action.finish - action.start;
  switch (action.action.work) {
    case PipelineWork::forward: rank.forward += time; break;
    case PipelineWork::backward:
    case PipelineWork::input_gradient: rank.backward += time; break;
    case PipelineWork::weight_gradient: rank.weight_gradient += time; break;
  }
}

/// Micro-batches whose activations a rank has, by stage and number.
using Held = std::set<std::pair<int32_t, int32_t>>;

void take_part(Held& held, const PipelineAction& action) {
  const std::pair micro_batch(action.stage, action.micro_batch);
  if (action.work == PipelineWork::forward) {
    held.insert(micro_batch);
  } else if (action.work != PipelineWork::input_gradient) {
    held.erase(micro_batch);
  }
}

/// What the steps before these rows have left under way: something only where a pipeline is not
/// emptied. What evaluations leave has the numbers of later micro-batches, whose backwards end it.
Held held_before(const Journal& journal, int32_t rank, const RowRange& rows) {
  Held held;
  int64_t index = -1;
  journal.lane(rank, 0).for_each([&](const Row& row) {
    ++index;
    if (index < rows.begin && row.row == RowKind::op && row.kind == OpKind::event) {
      if (const auto action = marked_action(row.site, row.tag)) {
        take_part(held, *action);
      }
    }
  });
  return held;
}

int32_t most_held_of(const std::vector<TimedAction>& actions, Held held) {
  size_t most = 0;
  for (const TimedAction& each : actions) {
    take_part(held, each.action);
    most = std::max(most, held.size());
  }
  return static_cast<int32_t>(most);
}

/// When each result of the step was there, and what made it.
using Made = std::map<PipelineResult, const TimedAction*>;

Made results_of(const std::vector<TimedAction>& actions) {
  Made made;
  for (const TimedAction& action : actions) {
    if (const auto result = result_of(action.action)) {
      made[*result] = &action;
    }
  }
  return made;
}

void find_waits(std::vector<TimedAction>& actions, const std::map<int32_t, Time>& begins,
                int32_t stages) {
  const Made made = results_of(actions);
  int32_t rank = -1;
  Time before{};
  for (TimedAction& action : actions) {
    before = action.rank == rank ? before : begins.at(action.rank);
    rank = action.rank;
    action.waited = std::max(Time{}, action.start - before);
    Time latest = before;
    for (const PipelineResult& input : inputs_of(action.action, stages)) {
      const auto found = made.find(input);
      // Of asynchronous pipelines the input may come from a step before: another has its number.
      const bool is_there = found != made.end() && found->second->finish <= action.start;
      if (is_there && found->second->finish > latest) {
        latest = found->second->finish;
        action.waited_for = found->second->action;
        action.after_input = std::max(Time{}, action.start - latest);
      }
    }
    before = std::max(before, action.finish);
  }
}

}  // namespace

std::optional<PipelineTimes> pipeline_times(const OneRun& run, const Results& results) {
  if (run.preparation.pipeline_ranks.empty() || run.result.journal == nullptr) {
    return std::nullopt;
  }
  const Journal& journal = *run.result.journal;
  PipelineTimes times;
  std::map<int32_t, Time> begins;
  std::set<int32_t> held;  // stages
  int32_t stages = 0;
  for (const int32_t rank : run.preparation.pipeline_ranks) {
    const std::vector<StepMark> steps = steps_of(journal, rank);
    const std::vector<int64_t> samples = samples_of_steps(*run.preparation.log, steps.size());
    const StepSequence sequence(journal.repeated_on(rank, 0), steps);
    const std::optional<SteadyStep> step = steady_step(sequence, samples);
    if (!step) {
      return std::nullopt;
    }
    std::vector<TimedAction> actions = actions_in(journal, rank, steps[step->mark].rows);
    // The steady step may be one that was left out, later than the one that shows it.
    const Time later = step->end - steps[step->mark].finish;
    for (TimedAction& action : actions) {
      action.start += later;
      action.finish += later;
    }
    if (!actions.empty() && held.contains(actions.front().action.stage)) {
      continue;  // it computes the stage together with a rank before it
    }
    TimesOfPipelineRank own{.rank = rank};
    for (const TimedAction& action : actions) {
      add_work(action, own);
      stages = std::max(stages, action.action.stage + 1);
      if (held.insert(action.action.stage).second) {
        own.stages.push_back(action.action.stage);
      }
    }
    std::ranges::sort(own.stages);
    own.most_held = most_held_of(actions, held_before(journal, rank, steps[step->mark].rows));
    own.step = breakdown_of(journal, rank, step->begin, step->end);
    own.memory_peak = results.ranks[static_cast<size_t>(rank)].memory.peak;
    begins[rank] = step->begin;
    times.ranks.push_back(std::move(own));
    times.actions.insert(times.actions.end(), actions.begin(), actions.end());
  }
  find_waits(times.actions, begins, stages);
  for (TimesOfPipelineRank& rank : times.ranks) {
    for (const TimedAction& action : times.actions) {
      rank.waited += action.rank == rank.rank ? action.waited : Time{};
    }
  }
  return times.actions.empty() ? std::nullopt : std::optional(std::move(times));
}

std::vector<TimedAction> longest_waits(const PipelineTimes& times, size_t most) {
  std::vector<TimedAction> waits;
  for (const TimedAction& action : times.actions) {
    if (action.waited > Time{}) {
      waits.push_back(action);
    }
  }
  std::ranges::stable_sort(waits, [](const TimedAction& left, const TimedAction& right) {
    return left.waited > right.waited;
  });
  waits.resize(std::min(waits.size(), most));
  return waits;
}

}  // namespace lockstep::cli
