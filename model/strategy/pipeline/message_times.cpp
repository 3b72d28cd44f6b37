#include "model/strategy/pipeline/message_times.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "model/core/ensure.hpp"

namespace lockstep {

namespace {

/// A message by what it brings: the same for sender and receiver.
PipelineResult brought_by(const PipelineMessage& message) {
  const bool is_gradient = message.content == PipelineMessage::Content::gradient;
  const int32_t toward = is_gradient ? -1 : 1;
  return {is_gradient, message.is_send ? message.stage + toward : message.stage,
          message.micro_batch};
}

/// Messages that begin together.
struct MessageBatch {
  const std::vector<PipelineMessage>* messages = nullptr;
  double computed = 0;  ///< when the computations before it have ended
  std::optional<double> begin{};
  std::optional<double> end{};
};

struct RankInTime {
  size_t next = 0;      ///< step
  double computed = 0;  ///< when what it has computed has ended
  std::vector<MessageBatch> batches;
  size_t ended = 0;                           ///< batches
  size_t unwaited = 0;                        ///< sends from this batch on have not been waited for
  bool has_begun = false;                     ///< the batch of an exchange that it waits for
  std::map<PipelineResult, size_t> receives;  ///< batches that computations wait for
};

class MessagePlayer {
 public:
  MessagePlayer(const std::vector<std::vector<PipelineStep>>& steps,
                const PipelineDurations& durations)
      : steps_(steps), durations_(durations), ranks_(steps.size()) {}

  double play() {
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (size_t rank = 0; rank < ranks_.size(); ++rank) {
        while (ranks_[rank].next < steps_[rank].size() && take_step(rank)) {
          goes_on = true;
        }
        goes_on |= begin_batches(ranks_[rank]);
        goes_on |= end_batches(ranks_[rank]);
      }
    }
    double end = 0;
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      ensure(ranks_[rank].next == steps_[rank].size(), "steps that every rank ends");
      end = std::max(end, ranks_[rank].computed);
    }
    return end;
  }

 private:
  /// False: it waits.
  bool take_step(size_t number) {
    RankInTime& rank = ranks_[number];
    const PipelineStep& step = steps_[number][rank.next];
    switch (step.kind) {
      case PipelineStep::Kind::compute:
        if (!receive_input(rank, step.action)) {
          return false;
        }
        rank.computed += duration_of(step.action.work);
        break;
      case PipelineStep::Kind::exchange:
        if (!rank.has_begun) {
          add_batch(rank, step);
        }
        rank.has_begun = !wait_for(rank, rank.batches.size() - 1);
        if (rank.has_begun) {
          return false;
        }
        break;
      case PipelineStep::Kind::begin_sends: add_batch(rank, step); break;
      case PipelineStep::Kind::begin_receives:
        add_batch(rank, step);
        for (const PipelineMessage& message : step.messages) {
          rank.receives[brought_by(message)] = rank.batches.size() - 1;
        }
        break;
      case PipelineStep::Kind::finish_sends:
        for (; rank.unwaited < rank.batches.size(); ++rank.unwaited) {
          if (!wait_for(rank, rank.unwaited)) {
            return false;
          }
        }
        break;
      case PipelineStep::Kind::gather_stage:
      case PipelineStep::Kind::free_stage:
      case PipelineStep::Kind::reduce_stage: break;
    }
    ++rank.next;
    return true;
  }

  void add_batch(RankInTime& rank, const PipelineStep& step) const {
    rank.batches.push_back({&step.messages, rank.computed});
  }

  bool wait_for(RankInTime& rank, size_t batch) const {
    const std::optional<double>& end = rank.batches[batch].end;
    rank.computed = std::max(rank.computed, end.value_or(0));
    return end.has_value();
  }

  bool receive_input(RankInTime& rank, const PipelineAction& action) const {
    const bool is_gradient = action.work != PipelineWork::forward;
    const auto receive = rank.receives.find({is_gradient, action.stage, action.micro_batch});
    return action.work == PipelineWork::weight_gradient || receive == rank.receives.end() ||
           wait_for(rank, receive->second);
  }

  bool begin_batches(RankInTime& rank) {
    const size_t at = rank.ended;
    if (at == rank.batches.size() || rank.batches[at].begin) {
      return false;
    }
    MessageBatch& batch = rank.batches[at];
    batch.begin = std::max(batch.computed, at == 0 ? 0 : *rank.batches[at - 1].end);
    for (const PipelineMessage& message : *batch.messages) {
      begins_[{brought_by(message), message.is_send}] = *batch.begin;
    }
    return true;
  }

  bool end_batches(RankInTime& rank) {
    if (rank.ended == rank.batches.size() || !rank.batches[rank.ended].begin) {
      return false;
    }
    MessageBatch& batch = rank.batches[rank.ended];
    double end = *batch.begin;
    for (const PipelineMessage& message : *batch.messages) {
      const auto other = begins_.find({brought_by(message), !message.is_send});
      if (other == begins_.end()) {
        return false;
      }
      end = std::max(end, other->second);
    }
    batch.end = end;
    ++rank.ended;
    return true;
  }

  double duration_of(PipelineWork work) const {
    switch (work) {
      case PipelineWork::forward: return durations_.forward;
      case PipelineWork::backward: return durations_.backward;
      case PipelineWork::input_gradient: return durations_.input_gradient;
      case PipelineWork::weight_gradient: return durations_.weight_gradient;
    }
    return 0;
  }

  const std::vector<std::vector<PipelineStep>>& steps_;
  const PipelineDurations& durations_;
  std::vector<RankInTime> ranks_;
  std::map<std::pair<PipelineResult, bool>, double> begins_;  ///< of messages; true: the send
};

}  // namespace

double makespan_with_messages(const std::vector<std::vector<PipelineStep>>& steps,
                              const PipelineDurations& durations) {
  return MessagePlayer(steps, durations).play();
}

}  // namespace lockstep
