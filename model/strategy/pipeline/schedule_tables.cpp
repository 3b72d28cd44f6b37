#include "model/strategy/pipeline/schedule_tables.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <utility>

#include "model/core/ensure.hpp"

namespace lockstep {

namespace {

/// Appends actions of one rank, and counts the micro-batches of each kind and stage.
class SlotWriter {
 public:
  explicit SlotWriter(int32_t stages) : counts_(static_cast<size_t>(stages)) {}

  void wait(int32_t slots) { slots_.resize(slots_.size() + static_cast<size_t>(slots)); }
  /// The next micro-batch of this work in the stage.
  void add(PipelineWork work, int32_t stage) {
    add(work, stage, counts_[static_cast<size_t>(stage)][static_cast<size_t>(work)]++);
  }
  void add(PipelineWork work, int32_t stage, int32_t micro_batch) {
    slots_.push_back(PipelineAction{work, stage, micro_batch});
  }
  /// The last action runs as one with that before it.
  void join() { slots_.back()->joined = true; }
  PipelineSlots take() { return std::move(slots_); }

 private:
  std::vector<std::array<int32_t, 4>> counts_;
  PipelineSlots slots_;
};

/// The order in which interleaved schedules go through the stages of a rank: rounds of so many
/// micro-batches through one stage, then the same through the next.
struct Interleaving {
  const PipelineShape& shape;
  int32_t rank;
  /// Forwards by which a rank is ahead of the next one.
  int32_t lead;

  int32_t of_round() const {
    return shape.micro_batches / std::max(1, shape.micro_batches / shape.ranks);
  }
  int32_t all() const { return shape.micro_batches * shape.stages_per_rank; }
  int32_t warmup() const {
    const int32_t of_last_stage = (shape.stages_per_rank - 1) * of_round();
    return std::min(all(), of_last_stage + lead * (shape.ranks - 1 - rank));
  }
  int32_t forward_stage(int32_t number) const {
    return number / of_round() % shape.stages_per_rank * shape.ranks + rank;
  }
  int32_t backward_stage(int32_t number) const {
    const int32_t turn = number / of_round() % shape.stages_per_rank;
    return (shape.stages_per_rank - 1 - turn) * shape.ranks + rank;
  }
};

/// Empty slots, as many as ranks are before this one, and the forwards of the warm-up.
SlotWriter warmed_up(const Interleaving& order) {
  SlotWriter slots(order.shape.stages());
  slots.wait(order.rank);
  for (int32_t i = 0; i < order.warmup(); ++i) {
    slots.add(PipelineWork::forward, order.forward_stage(i));
  }
  return slots;
}

}  // namespace

PipelineSlots forward_slots(const PipelineShape& shape, int32_t rank) {
  SlotWriter slots(shape.stages());
  for (const int32_t stage : shape.stages_of(rank)) {
    for (int32_t i = 0; i < shape.micro_batches; ++i) {
      slots.add(PipelineWork::forward, stage);
    }
  }
  return slots.take();
}

PipelineSlots gpipe_slots(const PipelineShape& shape, int32_t rank) {
  SlotWriter slots(shape.stages());
  for (const PipelineWork work : {PipelineWork::forward, PipelineWork::backward}) {
    for (int32_t i = 0; i < shape.micro_batches; ++i) {
      slots.add(work, rank);
    }
  }
  return slots.take();
}

PipelineSlots one_forward_one_backward_slots(const PipelineShape& shape, int32_t rank) {
  SlotWriter slots(shape.stages());
  const int32_t warmup = std::min(shape.micro_batches, shape.ranks - rank);
  for (int32_t i = 0; i < warmup; ++i) {
    slots.add(PipelineWork::forward, rank);
  }
  for (int32_t i = 0; i < shape.micro_batches; ++i) {
    slots.add(PipelineWork::backward, rank);
    if (warmup + i < shape.micro_batches) {
      slots.add(PipelineWork::forward, rank);
    }
  }
  return slots.take();
}

// Empty slots keep ranks in step: as many before the first forward as ranks are before this one,
// and behind the warm-up until the first backward has come up from the last stage.
PipelineSlots interleaved_slots(const PipelineShape& shape, int32_t rank) {
  const Interleaving order{shape, rank, 2};
  const int32_t warmup = order.warmup();
  SlotWriter slots = warmed_up(order);
  const int32_t first_backward = shape.stages() + 2 * (shape.ranks - 1 - rank);
  slots.wait(std::max(0, first_backward - (warmup + rank)));
  for (int32_t i = 0; i < order.all(); ++i) {
    if (warmup + i < order.all()) {
      slots.add(PipelineWork::forward, order.forward_stage(warmup + i));
    } else {
      slots.wait(1);  // others still run a forward in theirs
    }
    slots.add(PipelineWork::backward, order.backward_stage(i));
  }
  return slots.take();
}

PipelineSlots breadth_first_slots(const PipelineShape& shape, int32_t rank) {
  SlotWriter slots(shape.stages());
  slots.wait(rank);
  std::vector<int32_t> stages = shape.stages_of(rank);
  for (const int32_t stage : stages) {
    for (int32_t i = 0; i < shape.micro_batches; ++i) {
      slots.add(PipelineWork::forward, stage, i);
    }
  }
  slots.wait(2 * (shape.ranks - 1 - rank));
  std::ranges::reverse(stages);
  for (const int32_t stage : stages) {
    for (int32_t i = shape.micro_batches - 1; i >= 0; --i) {
      slots.add(PipelineWork::backward, stage, i);
    }
  }
  return slots.take();
}

// Gradients of weights come as many actions later as ranks are before this one.
PipelineSlots interleaved_zero_bubble_slots(const PipelineShape& shape, int32_t rank) {
  const Interleaving order{shape, rank, 1};
  const int32_t warmup = order.warmup();
  SlotWriter slots = warmed_up(order);
  slots.wait(shape.ranks - 1 - rank);
  int32_t weights = 0;
  for (int32_t i = 0; i < order.all(); ++i) {
    if (warmup + i < order.all()) {
      slots.add(PipelineWork::forward, order.forward_stage(warmup + i));
    }
    slots.add(PipelineWork::input_gradient, order.backward_stage(i));
    if (i >= rank) {
      slots.add(PipelineWork::weight_gradient, order.backward_stage(weights++));
    }
  }
  for (; weights < order.all(); ++weights) {
    slots.add(PipelineWork::weight_gradient, order.backward_stage(weights));
  }
  return slots.take();
}

namespace {

/// Writes what a rank does in its two stages of a V: `down`, and `up` on the way back.
class VWriter {
 public:
  VWriter(const PipelineShape& shape, int32_t rank)
      : slots_(shape.stages()), down_{rank}, up_{shape.stages() - 1 - rank} {}

  void forward_down() { forward(down_); }
  void forward_up() { forward(up_); }
  void input_down() { input(down_); }
  void input_up() { input(up_); }
  void weights_down() { weights(down_); }
  void weights_up() { weights(up_); }
  /// Gradients of input and weights at once.
  void whole_down() { whole(down_); }
  void whole_up() { whole(up_); }
  void join() { slots_.join(); }
  /// Those of weights that have been owed longest, in whichever stage.
  void oldest_weights() {
    if (!owed_.empty()) {
      slots_.add(PipelineWork::weight_gradient, owed_.front().first, owed_.front().second);
      owed_.erase(owed_.begin());
    }
  }
  void backward_down() {
    input_down();
    weights_down();
  }
  void backward_up() {
    input_up();
    weights_up();
  }
  int32_t forwards_down() const { return down_.forwards; }
  int32_t forwards_up() const { return up_.forwards; }
  bool owes_weights_down() const { return down_.weights < down_.inputs; }
  bool owes_weights_up() const { return up_.weights < up_.inputs; }
  PipelineSlots take() { return slots_.take(); }

 private:
  struct Way {
    int32_t stage = 0;
    int32_t forwards = 0;
    int32_t inputs = 0;
    int32_t weights = 0;
  };
  void forward(Way& way) { slots_.add(PipelineWork::forward, way.stage, way.forwards++); }
  void input(Way& way) {
    owed_.emplace_back(way.stage, way.inputs);
    slots_.add(PipelineWork::input_gradient, way.stage, way.inputs++);
  }
  void whole(Way& way) {
    slots_.add(PipelineWork::backward, way.stage, way.inputs++);
    ++way.weights;
  }
  void weights(Way& way) { slots_.add(PipelineWork::weight_gradient, way.stage, way.weights++); }

  SlotWriter slots_;
  Way down_;
  Way up_;
  std::vector<std::pair<int32_t, int32_t>> owed_;  ///< stage and micro-batch
};

void repeat(int32_t times, const std::function<void()>& what) {
  for (int32_t i = 0; i < times; ++i) {
    what();
  }
}

}  // namespace

// The order is made for at least 2 ranks - 1 micro-batches; those that are not there are left out
// of it.
PipelineSlots zero_bubble_v_slots(const PipelineShape& shape, int32_t rank) {
  const int32_t made_for = std::max(shape.micro_batches, 2 * shape.ranks - 1);
  const int32_t ranks_behind = shape.ranks - rank;  // this one among them
  VWriter way(shape, rank);
  // Warm-up: down alone, then by turns, then up with its backward.
  repeat(2 * ranks_behind - 1, [&] { way.forward_down(); });
  repeat(rank, [&] {
    way.forward_up();
    way.forward_down();
  });
  repeat(ranks_behind, [&] {
    way.forward_up();
    way.backward_up();
  });
  // Steady: a forward and a whole backward of each.
  while (way.forwards_up() < way.forwards_down() || way.forwards_down() < made_for) {
    if (way.forwards_down() < made_for) {
      way.forward_down();
    }
    way.backward_down();
    way.forward_up();
    way.backward_up();
  }
  // The end: what others wait for first.
  repeat(rank, [&] {
    way.input_down();
    way.input_up();
  });
  repeat(ranks_behind, [&] {
    way.input_down();
    way.weights_down();
  });
  while (way.owes_weights_up()) {
    way.weights_up();
  }
  while (way.owes_weights_down()) {
    way.weights_down();
  }
  PipelineSlots all = way.take();
  std::erase_if(all, [&](const std::optional<PipelineAction>& action) {
    return action && action->micro_batch >= shape.micro_batches;
  });
  return all;
}

// After DeepSeek's DualPipe, cut in half: forwards of one way beside backwards of the other. torch
// runs such a pair one after the other. The last of the backwards leave their gradients of weights
// for the end.
PipelineSlots dual_pipe_v_slots(const PipelineShape& shape, int32_t rank) {
  const int32_t behind = shape.ranks - 1 - rank;
  VWriter way(shape, rank);
  repeat(2 * behind, [&] { way.forward_down(); });
  repeat(rank + 1, [&] {
    way.forward_down();
    way.forward_up();
  });
  repeat(behind, [&] {
    way.input_up();
    way.oldest_weights();
    way.forward_up();
  });
  const auto up_beside_down = [&] {
    way.forward_up();
    way.whole_down();
    way.join();
  };
  for (int32_t i = 0; i < shape.micro_batches - 2 * shape.ranks + rank + 1; ++i) {
    way.forward_down();
    way.whole_up();
    if (i > 0 || behind > 0) {  // apart, the last rank's first backward comes up earlier
      way.join();
    }
    up_beside_down();
  }
  repeat(behind, [&] {
    way.whole_up();
    up_beside_down();
  });
  for (int32_t i = 0; i < 2 * (rank + 1); ++i) {
    const bool is_whole = i <= rank;  // the first half of them
    if (i % 2 == 0) {
      is_whole ? way.whole_up() : way.input_up();
    } else {
      is_whole ? way.whole_down() : way.input_down();
    }
  }
  repeat(behind, [&] {
    way.oldest_weights();
    way.input_down();
  });
  repeat(rank + 1, [&] { way.oldest_weights(); });
  return way.take();
}

void wait_for_inputs(PipelineSchedule& schedule) {
  const std::vector<PipelineSlots> without = std::exchange(schedule.slots, {});
  schedule.slots.resize(without.size());
  PipelineResults done(schedule.shape);  // before the present slot
  const auto has_inputs = [&](const PipelineAction& action) {
    const std::vector<PipelineResult> inputs = inputs_of(action, schedule.shape.stages());
    return std::ranges::all_of(inputs, [&](const auto& each) { return done.contains(each); });
  };
  std::vector<size_t> next(without.size());
  const auto has_ended = [&] {
    for (size_t rank = 0; rank < without.size(); ++rank) {
      if (next[rank] < without[rank].size()) {
        return false;
      }
    }
    return true;
  };
  while (!has_ended()) {
    std::vector<PipelineAction> of_slot;
    bool goes_on = false;
    for (size_t rank = 0; rank < without.size(); ++rank) {
      if (next[rank] == without[rank].size()) {
        continue;
      }
      const std::optional<PipelineAction>& action = without[rank][next[rank]];
      const bool runs = !action || has_inputs(*action);
      schedule.slots[rank].push_back(runs ? action : std::nullopt);
      next[rank] += runs ? 1 : 0;
      goes_on |= runs;
      if (action && runs) {
        of_slot.push_back(*action);
      }
    }
    ensure(goes_on, "an order of actions in which every input comes");
    for (const PipelineAction& action : of_slot) {
      if (const auto result = result_of(action)) {
        done.insert(*result);
      }
    }
  }
}

}  // namespace lockstep
