#include "model/strategy/pipeline/pipeline_steps.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace lockstep {

namespace {

using Content = PipelineMessage::Content;
using Messages = std::vector<PipelineMessage>;

/// The messages of the stages of one rank.
class Neighbours {
 public:
  Neighbours(const PipelineShape& shape, int32_t rank) : shape_(shape), rank_(rank) {}

  /// What the stage's forward needs, or gives.
  Messages receive_activation(int32_t stage, int32_t micro_batch) const {
    return between(stage, stage - 1, {Content::activation, false, stage, micro_batch});
  }
  Messages send_activation(int32_t stage, int32_t micro_batch) const {
    return between(stage, stage + 1, {Content::activation, true, stage, micro_batch});
  }
  /// What its backward needs, or gives.
  Messages receive_gradient(int32_t stage, int32_t micro_batch) const {
    return between(stage, stage + 1, {Content::gradient, false, stage, micro_batch});
  }
  Messages send_gradient(int32_t stage, int32_t micro_batch) const {
    return between(stage, stage - 1, {Content::gradient, true, stage, micro_batch});
  }

 private:
  // Nothing where the other stage does not exist, or is this rank's own.
  Messages between(int32_t, int32_t other, PipelineMessage message) const {
    if (other < 0 || other >= shape_.stages() || shape_.rank_of(other) == rank_) {
      return {};
    }
    message.peer = shape_.rank_of(other);
    return {message};
  }

  const PipelineShape& shape_;
  int32_t rank_;
};

/// Appends steps; batches without messages are none.
class StepWriter {
 public:
  void compute(const PipelineAction& action) {
    steps_.push_back({PipelineStep::Kind::compute, action});
  }
  void exchange(Messages messages) { add(PipelineStep::Kind::exchange, std::move(messages)); }
  void exchange(Messages first, const Messages& second) {
    first.insert(first.end(), second.begin(), second.end());
    exchange(std::move(first));
  }
  void begin_sends(Messages messages) {
    add(PipelineStep::Kind::begin_sends, std::move(messages));
    has_sends_ |= !steps_.empty() && steps_.back().kind == PipelineStep::Kind::begin_sends;
  }
  void finish_sends() {
    if (std::exchange(has_sends_, false)) {
      steps_.push_back({PipelineStep::Kind::finish_sends});
    }
  }
  std::vector<PipelineStep> take() { return std::move(steps_); }

 private:
  void add(PipelineStep::Kind kind, Messages messages) {
    if (!messages.empty()) {
      steps_.push_back({kind, {}, std::move(messages)});
    }
  }

  std::vector<PipelineStep> steps_;
  bool has_sends_ = false;
};

// Sends are begun as results come, and waited for when the phase ends.
std::vector<PipelineStep> gpipe_steps(const PipelineShape& shape, int32_t rank) {
  const Neighbours neighbours(shape, rank);
  StepWriter steps;
  for (int32_t i = 0; i < shape.micro_batches; ++i) {
    steps.exchange(neighbours.receive_activation(rank, i));
    steps.compute({PipelineWork::forward, rank, i});
    steps.begin_sends(neighbours.send_activation(rank, i));
  }
  steps.finish_sends();
  for (int32_t i = 0; i < shape.micro_batches; ++i) {
    steps.exchange(neighbours.receive_gradient(rank, i));
    steps.compute({PipelineWork::backward, rank, i});
    steps.begin_sends(neighbours.send_gradient(rank, i));
  }
  steps.finish_sends();
  return steps.take();
}

// The last send of the warm-up travels with the first gradient that is received; then each send
// with the next receive. Apart, two neighbours would wait for one another.
std::vector<PipelineStep> one_forward_one_backward_steps(const PipelineShape& shape, int32_t rank) {
  const Neighbours neighbours(shape, rank);
  const int32_t warmup = std::min(shape.micro_batches, shape.ranks - rank);
  StepWriter steps;
  for (int32_t i = 0; i < warmup; ++i) {
    steps.exchange(neighbours.receive_activation(rank, i));
    steps.compute({PipelineWork::forward, rank, i});
    steps.finish_sends();
    if (i + 1 < warmup) {
      steps.begin_sends(neighbours.send_activation(rank, i));
    }
  }
  int32_t forwards = warmup;
  int32_t backwards = 0;
  while (true) {  // every turn counts a backward
    steps.exchange(neighbours.send_activation(rank, forwards - 1),
                   neighbours.receive_gradient(rank, backwards));
    steps.compute({PipelineWork::backward, rank, backwards++});
    if (forwards == shape.micro_batches) {
      break;
    }
    steps.exchange(neighbours.send_gradient(rank, backwards - 1),
                   neighbours.receive_activation(rank, forwards));
    steps.compute({PipelineWork::forward, rank, forwards++});
  }
  for (; backwards < shape.micro_batches; ++backwards) {
    steps.begin_sends(neighbours.send_gradient(rank, backwards - 1));
    steps.exchange(neighbours.receive_gradient(rank, backwards));
    steps.compute({PipelineWork::backward, rank, backwards});
    steps.finish_sends();
  }
  steps.begin_sends(neighbours.send_gradient(rank, backwards - 1));
  steps.finish_sends();
  return steps.take();
}

// From an empty pipeline to an empty one.
std::vector<PipelineStep> asynchronous_steps(const PipelineShape& shape, int32_t rank) {
  const AsynchronousOrder order{shape, shape.micro_batches};
  std::vector<PipelineStep> steps = order.steps(rank, 0, shape.micro_batches);
  std::ranges::move(order.drain(rank, shape.micro_batches), std::back_inserter(steps));
  return steps;
}

bool gives_gradient(const PipelineAction& action) {
  return action.work == PipelineWork::backward || action.work == PipelineWork::input_gradient;
}

}  // namespace

// The gradient of a backward travels with the next activation that is received, an activation with
// the next gradient, as in the steady state of 1F1B: the order of neighbours is the same, also
// where a step of the trainer ends between two of them.
std::vector<PipelineStep> AsynchronousOrder::steps(int32_t rank, int64_t before,
                                                   int32_t count) const {
  const Neighbours neighbours(shape, rank);
  const auto number = [this](int64_t i) { return static_cast<int32_t>(i % numbers); };
  StepWriter steps;
  for (int64_t forward = before; forward < before + count; ++forward) {
    const int64_t backward = forward - ahead(rank);
    steps.exchange(backward > 0 ? neighbours.send_gradient(rank, number(backward - 1)) : Messages(),
                   neighbours.receive_activation(rank, number(forward)));
    steps.compute({PipelineWork::forward, rank, number(forward)});
    steps.exchange(
        neighbours.send_activation(rank, number(forward)),
        backward >= 0 ? neighbours.receive_gradient(rank, number(backward)) : Messages());
    if (backward >= 0) {
      steps.compute({PipelineWork::backward, rank, number(backward)});
    }
  }
  return steps.take();
}

std::vector<PipelineStep> AsynchronousOrder::drain(int32_t rank, int64_t micro_batches) const {
  const Neighbours neighbours(shape, rank);
  const auto number = [this](int64_t i) { return static_cast<int32_t>(i % numbers); };
  StepWriter steps;
  const int64_t first = std::max<int64_t>(0, micro_batches - ahead(rank));
  for (int64_t backward = first; backward < micro_batches; ++backward) {
    if (backward > 0) {
      steps.begin_sends(neighbours.send_gradient(rank, number(backward - 1)));
    }
    steps.exchange(neighbours.receive_gradient(rank, number(backward)));
    steps.compute({PipelineWork::backward, rank, number(backward)});
    steps.finish_sends();
  }
  if (micro_batches > 0) {
    steps.begin_sends(neighbours.send_gradient(rank, number(micro_batches - 1)));
    steps.finish_sends();
  }
  return steps.take();
}

// In each slot: the action, then one batch of what it gives and of what the neighbours' give.
std::vector<PipelineStep> steps_by_slots(const PipelineSchedule& schedule, int32_t rank) {
  const PipelineShape& shape = schedule.shape;
  const Neighbours neighbours(shape, rank);
  size_t slots = 0;
  for (const auto& of_rank : schedule.slots) {
    slots = std::max(slots, of_rank.size());
  }
  StepWriter steps;
  for (size_t slot = 0; slot < slots; ++slot) {
    Messages messages;
    const auto append = [&messages](const Messages& more) {
      messages.insert(messages.end(), more.begin(), more.end());
    };
    for (int32_t other = 0; other < shape.ranks; ++other) {
      const auto& of_other = schedule.slots[static_cast<size_t>(other)];
      if (slot >= of_other.size() || !of_other[slot]) {
        continue;
      }
      const PipelineAction& action = *of_other[slot];
      const bool is_forward = action.work == PipelineWork::forward;
      if (other == rank) {
        steps.compute(action);
        append(is_forward ? neighbours.send_activation(action.stage, action.micro_batch)
               : gives_gradient(action) ? neighbours.send_gradient(action.stage, action.micro_batch)
                                        : Messages());
        continue;
      }
      const int32_t next = is_forward ? action.stage + 1 : action.stage - 1;
      const bool comes_here = next >= 0 && next < shape.stages() && shape.rank_of(next) == rank;
      if (comes_here && (is_forward || gives_gradient(action))) {
        append(is_forward ? neighbours.receive_activation(next, action.micro_batch)
                          : neighbours.receive_gradient(next, action.micro_batch));
      }
    }
    steps.exchange(std::move(messages));
  }
  return steps.take();
}

std::vector<PipelineStep> pipeline_steps(PipelineScheduleKind kind,
                                         const PipelineSchedule& schedule, int32_t rank) {
  switch (kind) {
    case PipelineScheduleKind::gpipe: return gpipe_steps(schedule.shape, rank);
    case PipelineScheduleKind::one_forward_one_backward:
      return one_forward_one_backward_steps(schedule.shape, rank);
    case PipelineScheduleKind::pipe_dream:
    case PipelineScheduleKind::pipe_dream_double_buffered:
      return asynchronous_steps(schedule.shape, rank);
    default: return steps_by_messages(schedule, rank);
  }
}

std::vector<std::vector<PipelineStep>> pipeline_steps(PipelineScheduleKind kind,
                                                      const PipelineSchedule& schedule) {
  if (!is_single_stage(kind)) {
    return steps_by_messages(schedule);
  }
  std::vector<std::vector<PipelineStep>> all;
  for (int32_t rank = 0; rank < schedule.shape.ranks; ++rank) {
    all.push_back(pipeline_steps(kind, schedule, rank));
  }
  return all;
}

}  // namespace lockstep
