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

/// Actions of a rank among some rows, with those that a simulation left out of a step. These may
/// repeat what was done in an earlier one.
class ActionsInRows {
 public:
  ActionsInRows(const Journal& journal, int32_t rank, const RowRange& rows)
      : lane_(journal.lane(rank, 0)), left_out_(journal.repeated_on(rank, 0)), rank_(rank) {
    for (const RepeatedRows& each : left_out_) {
      if (each.level == period_level::micro_batches) {
        places_.emplace(std::pair(each.begin, each.first_inner), 0);
        places_.emplace(std::pair(each.end, each.end_inner), 0);
      }
    }
    size_t before = 0;
    lane_.for_each([&](const Row& row) {
      if (++index_ >= rows.end) {
        return;
      }
      if (index_ == rows.begin) {
        drop_empty();
        before = actions_.size();
      }
      repeat_before();
      if (row.row == RowKind::op) {
        add(row);
      }
    });
    drop_empty();
    actions_.erase(actions_.begin(), actions_.begin() + static_cast<std::ptrdiff_t>(before));
  }
  std::vector<TimedAction> take() { return std::move(actions_); }

 private:
  void add(const Row& row) {
    const auto marked = row.kind == OpKind::event ? marked_action(row.site, row.tag) : std::nullopt;
    if (marked) {
      drop_empty();
      actions_.push_back({rank_, *marked});
      has_begun_ = false;
    } else if (!actions_.empty() && is_work_of_layer(row)) {
      const Completion done = lane_.completion(row.sequence);
      TimedAction& action = actions_.back();
      action.start = has_begun_ ? std::min(action.start, done.start) : done.start;
      action.finish = std::max(action.finish, done.finish);
      has_begun_ = true;
    }
  }

  // The last action of a stage without a kernel.
  void drop_empty() {
    if (!has_begun_ && !actions_.empty()) {
      actions_.pop_back();
      has_begun_ = true;
    }
  }

  void repeat_before() {
    auto place = places_.lower_bound({index_, 0});
    const auto is_here = [&] { return place != places_.end() && place->first.first == index_; };
    if (is_here()) {
      drop_empty();
    }
    while (true) {
      for (; is_here() && place->first.second <= static_cast<int64_t>(next_); ++place) {
        place->second = actions_.size();
      }
      if (next_ == left_out_.size() || left_out_[next_].row != index_) {
        return;
      }
      const RepeatedRows& rows = left_out_[next_++];
      if (rows.level == period_level::micro_batches) {
        repeat(rows);
      }
    }
  }

  // The same, later and for the micro-batches that follow.
  void repeat(const RepeatedRows& rows) {
    const size_t begin = places_.at({rows.begin, rows.first_inner});
    const size_t end = places_.at({rows.end, rows.end_inner});
    for (int64_t turn = 0; turn < rows.periods; ++turn) {
      for (size_t at = begin; at < end; ++at) {
        TimedAction again = actions_[at];
        const Time later = rows.first + rows.period * turn;
        again.start += later;
        again.finish += later;
        again.is_left_out = true;
        again.action.micro_batch = next_of(again.action);
        actions_.push_back(again);
      }
    }
  }

  int32_t next_of(const PipelineAction& action) const {
    const auto last = std::find_if(actions_.rbegin(), actions_.rend(), [&](const auto& each) {
      return each.action.work == action.work && each.action.stage == action.stage;
    });
    return last->action.micro_batch + 1;
  }

  const LaneJournal& lane_;
  std::span<const RepeatedRows> left_out_;
  int32_t rank_;
  std::map<std::pair<int64_t, int64_t>, size_t> places_;  ///< actions before, as in StepSequence
  size_t next_ = 0;                                       ///< of left_out_
  int64_t index_ = -1;
  bool has_begun_ = true;  ///< some kernel of the last action was seen
  std::vector<TimedAction> actions_;
};

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
/// emptied, and nothing of a step is left out. What evaluations leave has the numbers of later
/// micro-batches, whose backwards end it.
Held held_before(const Journal& journal, int32_t rank, const RowRange& rows) {
  Held held;
  const std::span<const RepeatedRows> left_out = journal.repeated_on(rank, 0);
  const bool empties = std::ranges::any_of(
      left_out, [](const RepeatedRows& each) { return each.level == period_level::micro_batches; });
  if (empties) {
    return held;
  }
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
    std::vector<TimedAction> actions = ActionsInRows(journal, rank, steps[step->mark].rows).take();
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

std::optional<MicroBatches> simulated_micro_batches(const Journal& journal, int32_t rank,
                                                    const RowRange& rows) {
  const bool may_repeat = std::ranges::any_of(
      journal.repeated_on(rank, 0),
      [](const RepeatedRows& each) { return each.level == period_level::micro_batches; });
  if (!may_repeat) {
    return std::nullopt;
  }
  MicroBatches micro_batches;
  std::optional<int32_t> stage;  // of several on the rank the first
  for (const TimedAction& each : ActionsInRows(journal, rank, rows).take()) {
    if (each.action.work == PipelineWork::forward &&
        each.action.stage == stage.value_or(each.action.stage)) {
      stage = each.action.stage;
      ++micro_batches.all;
      micro_batches.simulated += each.is_left_out ? 0 : 1;
    }
  }
  return micro_batches.simulated < micro_batches.all ? std::optional(micro_batches) : std::nullopt;
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
