// When a rank with several stages begins its messages (torch/distributed/pipelining/schedules.py,
// _add_send_recv): the sender puts a receive into the order of the other rank, so that both begin
// their messages in one order.
#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "model/core/ensure.hpp"
#include "model/strategy/pipeline/pipeline_steps.hpp"
#include "model/strategy/pipeline/schedule_tables.hpp"

namespace lockstep {

namespace {

/// Actions that run as one; none: a step of another kind.
struct Turn {
  std::vector<PipelineAction> actions;
  std::optional<PipelineStep> other{};
};

/// Stages whose parameters are gathered at once, where they are divided.
constexpr size_t active_stages_max = 3;

bool makes_weight_gradients(const PipelineAction& action) {
  return action.work == PipelineWork::backward || action.work == PipelineWork::weight_gradient;
}

std::vector<Turn> turns_of(const PipelineSlots& slots) {
  std::vector<Turn> turns;
  for (const std::optional<PipelineAction>& action : slots) {
    if (!action) {
      continue;
    }
    if (action->joined) {
      turns.back().actions.push_back(*action);
    } else {
      turns.push_back({{*action}});
    }
  }
  return turns;
}

/// A stage, and the turn that computes it next.
struct NextStage {
  int32_t stage = 0;
  size_t turn = 0;
};

/// For each turn the stages that it and those behind it compute, the next ones first; all those of
/// a turn with which they become enough.
std::vector<std::vector<NextStage>> next_stages(const std::vector<Turn>& turns) {
  std::vector<std::vector<NextStage>> all(turns.size());
  for (size_t turn = turns.size(); turn-- > 0;) {
    std::vector<NextStage>& next = all[turn];
    const auto add = [&next](int32_t stage, size_t computed_in) {
      if (std::ranges::find(next, stage, &NextStage::stage) == next.end()) {
        next.push_back({stage, computed_in});
      }
    };
    for (const PipelineAction& action : turns[turn].actions) {
      add(action.stage, turn);
    }
    for (size_t later = 0; turn + 1 < turns.size() && later < all[turn + 1].size(); ++later) {
      const NextStage& each = all[turn + 1][later];
      if (next.size() >= active_stages_max && each.turn != next.back().turn) {
        break;
      }
      add(each.stage, each.turn);
    }
  }
  return all;
}

Turn turn_of(PipelineStep::Kind kind, int32_t stage) {
  return {{}, PipelineStep{kind, {PipelineWork::forward, stage}}};
}

/// With the turns that torch's lowering adds (_add_unshard_reshard, _add_reduce_grad): for each
/// stage that it frees or gathers before an action, and for the reduction of a stage's gradients
/// after its last micro-batch. They move the turns behind them, also where nothing is divided.
std::deque<Turn> lowered(const std::vector<Turn>& turns, int32_t micro_batches) {
  std::deque<Turn> all;
  std::set<int32_t> active;
  std::map<int32_t, int32_t> done;
  const std::vector<std::vector<NextStage>> next_of_turns = next_stages(turns);
  for (size_t turn = 0; turn < turns.size(); ++turn) {
    const std::vector<NextStage>& next = next_of_turns[turn];
    std::set<int32_t> wanted;
    for (const NextStage& each : next) {
      wanted.insert(each.stage);
    }
    for (const int32_t stage : active) {
      if (!wanted.contains(stage)) {
        all.push_back(turn_of(PipelineStep::Kind::free_stage, stage));
      }
    }
    for (const NextStage& each : next) {
      if (!active.contains(each.stage)) {
        all.push_back(turn_of(PipelineStep::Kind::gather_stage, each.stage));
      }
    }
    active = wanted;
    all.push_back(turns[turn]);
    for (const PipelineAction& action : turns[turn].actions) {
      if (makes_weight_gradients(action) && ++done[action.stage] == micro_batches) {
        all.push_back(turn_of(PipelineStep::Kind::reduce_stage, action.stage));
      }
    }
  }
  return all;
}

/// Goes round the ranks, one turn each, as long as what a turn computes with is there.
class MessageOrder {
 public:
  /// `only`: the rank whose steps are asked for; none: those of all.
  MessageOrder(const PipelineSchedule& schedule, std::optional<int32_t> only)
      : shape_(schedule.shape),
        only_(only),
        steps_(schedule.slots.size()),
        has_(schedule.slots.size(), PipelineResults(schedule.shape)) {
    for (const PipelineSlots& slots : schedule.slots) {
      turns_.push_back(lowered(turns_of(slots), shape_.micro_batches));
    }
  }

  /// By rank.
  std::vector<std::vector<PipelineStep>> steps() {
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (size_t each = 0; each < turns_.size(); ++each) {
        goes_on |= take_turn(each);
      }
    }
    ensure(std::ranges::all_of(turns_, [](const auto& turns) { return turns.empty(); }),
           "an order of actions in which every input comes");
    return std::move(steps_);
  }

 private:
  bool is_ready(size_t rank, const Turn& turn) const {
    return std::ranges::all_of(turn.actions, [&](const PipelineAction& action) {
      return std::ranges::all_of(inputs_of(action, shape_.stages()),
                                 [&](const auto& input) { return has_[rank].contains(input); });
    });
  }

  bool take_turn(size_t rank) {
    if (turns_[rank].empty() || !is_ready(rank, turns_[rank].front())) {
      return false;
    }
    const Turn turn = std::move(turns_[rank].front());
    turns_[rank].pop_front();
    if (turn.other) {
      note(rank, turn.other->kind, turn.other->action);
    }
    for (const PipelineAction& action : turn.actions) {
      note(rank, PipelineStep::Kind::compute, action);
      if (const auto result = result_of(action)) {
        has_[rank].insert(*result);
      }
    }
    for (const PipelineAction& action : turn.actions) {
      send_result_of(action, static_cast<int32_t>(rank));
    }
    return true;
  }

  void send_result_of(const PipelineAction& action, int32_t rank) {
    const auto result = result_of(action);
    const int32_t next = action.stage + (action.work == PipelineWork::forward ? 1 : -1);
    if (!result || next < 0 || next >= shape_.stages() || shape_.rank_of(next) == rank) {
      return;
    }
    const auto content = result->is_gradient ? PipelineMessage::Content::gradient
                                             : PipelineMessage::Content::activation;
    const int32_t peer = shape_.rank_of(next);
    const PipelineMessage sent{content, true, action.stage, action.micro_batch, peer};
    const PipelineMessage received{content, false, next, action.micro_batch, rank};
    const auto other = static_cast<size_t>(peer);
    note(static_cast<size_t>(rank), PipelineStep::Kind::begin_sends, {}, sent);
    note(other, PipelineStep::Kind::begin_receives, {}, received);
    has_[other].insert(*result);
  }

  void note(size_t rank, PipelineStep::Kind kind, const PipelineAction& action,
            std::optional<PipelineMessage> message = {}) {
    if (only_.value_or(static_cast<int32_t>(rank)) == static_cast<int32_t>(rank)) {
      steps_[rank].push_back({kind, action, {}});
      if (message) {
        steps_[rank].back().messages.push_back(*message);
      }
    }
  }

  const PipelineShape& shape_;
  std::optional<int32_t> only_;
  std::vector<std::deque<Turn>> turns_;
  std::vector<std::vector<PipelineStep>> steps_;
  std::vector<PipelineResults> has_;
};

}  // namespace

namespace {

void finish_sends(std::vector<PipelineStep>& steps) {
  const bool sends = std::ranges::any_of(
      steps, [](const PipelineStep& step) { return step.kind == PipelineStep::Kind::begin_sends; });
  if (sends) {
    steps.push_back({PipelineStep::Kind::finish_sends});
  }
}

}  // namespace

std::vector<std::vector<PipelineStep>> steps_by_messages(const PipelineSchedule& schedule) {
  std::vector<std::vector<PipelineStep>> all = MessageOrder(schedule, {}).steps();
  std::ranges::for_each(all, finish_sends);
  return all;
}

std::vector<PipelineStep> steps_by_messages(const PipelineSchedule& schedule, int32_t rank) {
  std::vector<PipelineStep> steps =
      std::move(MessageOrder(schedule, rank).steps()[static_cast<size_t>(rank)]);
  finish_sends(steps);
  return steps;
}

}  // namespace lockstep
