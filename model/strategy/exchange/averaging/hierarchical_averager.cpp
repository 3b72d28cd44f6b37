#include "model/strategy/exchange/averaging/hierarchical_averager.hpp"

#include <fmt/core.h>

#include "model/strategy/exchange/hooks/hook_sites.hpp"

namespace lockstep {

// new_subgroups, level by level: a new_group of each, of all ranks, one after the other. The last
// level is the world.
Program HierarchicalModelAverager::begin(Rank& rank) {
  if (!groups_.empty()) {
    co_return;
  }
  for (const AveragingLevel& level : levels_) {
    groups_.push_back(world_group);
    if (level.group_size == rank.world_size()) {
      continue;
    }
    for (int64_t first = 0; first < rank.world_size(); first += level.group_size) {
      std::vector<int64_t> members;
      for (int64_t member = first; member < first + level.group_size; ++member) {
        members.push_back(member);
      }
      const Rank::NewGroup made = rank.new_group(
          world_group, members, {communication_stream, {}, site_id(hook_sites::make_levels)});
      co_await rank.settle(made.ready);
      if (first <= rank.id() && rank.id() < first + level.group_size) {
        groups_.back() = made.group;
      }
    }
  }
}

size_t HierarchicalModelAverager::level_of(int64_t step) const {
  for (size_t level = levels_.size(); step >= warmup_steps_ && level-- > 0;) {
    if (step % levels_[level].period == 0) {
      return level;
    }
  }
  return levels_.size();
}

int64_t HierarchicalModelAverager::kind_of_step(int64_t ahead) const {
  return static_cast<int64_t>(level_of(steps_ + ahead));
}

int64_t HierarchicalModelAverager::place(int64_t ahead) const {
  const int64_t step = steps_ + ahead;
  return step < warmup_steps_ ? step - warmup_steps_ : step % steps_of_cycle();
}

int64_t HierarchicalModelAverager::steps_of_cycle() const {
  int64_t steps = 1;
  for (const AveragingLevel& level : levels_) {
    steps = common_cycle(steps, level.period);
  }
  return steps;
}

void HierarchicalModelAverager::leave_out(int64_t steps) {
  for (int64_t step = 0; step < steps; ++step) {
    const bool averages_all = is_of_all(level_of(steps_++), ranks_);
    of_all_ += averages_all ? 1 : 0;
    last_of_all_ = averages_all ? steps_ : last_of_all_;
  }
}

Task<Bytes> HierarchicalModelAverager::average(Rank& rank, size_t optimizer) {
  const size_t level = level_of(steps_++);
  ranks_ = rank.world_size();
  if (level == levels_.size()) {
    co_return Bytes{};
  }
  if (is_of_all(level, ranks_)) {
    ++of_all_;
    last_of_all_ = steps_;
  }
  const std::vector<Slice> values = parameters_of(optimizer, true);
  co_return co_await replace_by_mean(rank, values, groups_[level], levels_[level].group_size);
}

KnownDifference HierarchicalModelAverager::difference() const {
  const int64_t period = levels_.back().period;
  if (of_all_ > 1 || steps_ == last_of_all_) {
    return {fmt::format("between the averagings of all models, every {} steps, replicas differ",
                        period),
            "", DifferenceKind::of_replicas_for_now};
  }
  return {fmt::format("the models of all ranks were averaged {} in this run of {} steps, with a "
                      "period of {}",
                      of_all_ == 0 ? "never" : "once", steps_, period),
          "make the longest period of period_group_size_dict shorter, or the run longer",
          DifferenceKind::of_replicas};
}

}  // namespace lockstep
