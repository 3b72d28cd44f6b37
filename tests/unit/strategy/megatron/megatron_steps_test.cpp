// Megatron-LM's schedules: their order, and that no rank waits forever.
#include "model/strategy/megatron/megatron_steps.hpp"

#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <set>

using namespace lockstep;

namespace megatron_steps_test {

namespace {

using Content = PipelineMessage::Content;

/// Plays the steps of all ranks: a batch of messages ends when each has met its partner. Between
/// two ranks messages of one direction meet in their order.
class Play {
 public:
  explicit Play(const PipelineShape& shape) : shape_(shape) {
    for (int32_t rank = 0; rank < shape.ranks; ++rank) {
      ranks_.push_back({megatron_steps(shape, rank)});
    }
  }

  /// Empty: every rank ends, and every action has had its inputs.
  std::string run() {
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (int32_t rank = 0; rank < shape_.ranks; ++rank) {
        while (advance(rank)) {
          goes_on = true;
        }
      }
    }
    for (const OneRank& rank : ranks_) {
      if (rank.next < rank.steps.size()) {
        return "a rank waits forever";
      }
    }
    return computed_ == 2 * shape_.stages() * shape_.micro_batches ? wrong_ : "actions are missing";
  }

 private:
  struct OneRank {
    std::vector<PipelineStep> steps;
    size_t next = 0;
    bool has_posted = false;
    int64_t open = 0;
  };

  bool advance(int32_t index) {
    OneRank& rank = ranks_[static_cast<size_t>(index)];
    if (rank.next == rank.steps.size()) {
      return false;
    }
    const PipelineStep& step = rank.steps[rank.next];
    if (step.kind == PipelineStep::Kind::compute) {
      compute(index, step.action);
      ++rank.next;
      return true;
    }
    const bool posts = !rank.has_posted;
    if (posts) {
      rank.has_posted = true;
      rank.open += static_cast<int64_t>(step.messages.size());
      for (const PipelineMessage& message : step.messages) {
        post(index, message);
      }
    }
    if (rank.open == 0) {
      rank.has_posted = false;
      ++rank.next;
      return true;
    }
    return posts;
  }

  void compute(int32_t rank, const PipelineAction& action) {
    ++computed_;
    for (const PipelineResult& input : inputs_of(action, shape_.stages())) {
      const bool is_here =
          shape_.rank_of(input.stage) == rank ? made_.contains(input) : arrived_.contains(input);
      wrong_ = is_here ? wrong_ : "an action runs before its input is there";
    }
    if (const auto result = result_of(action)) {
      made_.insert(*result);
    }
  }

  void post(int32_t rank, const PipelineMessage& message) {
    const auto way =
        message.is_send ? std::pair(rank, message.peer) : std::pair(message.peer, rank);
    auto& [sends, receives] = ways_[way];
    (message.is_send ? sends : receives).push_back(message);
    while (!sends.empty() && !receives.empty()) {
      const PipelineMessage sent = sends.front();
      const PipelineMessage received = receives.front();
      sends.pop_front();
      receives.pop_front();
      const int32_t step = sent.content == Content::activation ? 1 : -1;
      if (sent.content != received.content || sent.micro_batch != received.micro_batch ||
          received.stage != sent.stage + step) {
        wrong_ = "a message meets a receive that is for another";
      }
      arrived_.insert({sent.content == Content::gradient, sent.stage, sent.micro_batch});
      --ranks_[static_cast<size_t>(way.first)].open;
      --ranks_[static_cast<size_t>(way.second)].open;
    }
  }

  PipelineShape shape_;
  std::vector<OneRank> ranks_;
  std::map<std::pair<int32_t, int32_t>,
           std::pair<std::deque<PipelineMessage>, std::deque<PipelineMessage>>>
      ways_;
  std::set<PipelineResult> made_;
  std::set<PipelineResult> arrived_;
  int32_t computed_ = 0;
  std::string wrong_;
};

/// "F0 F1 B0 F2": what a rank computes, with several stages "F0.1" of its second.
std::string order_of(const PipelineShape& shape, int32_t rank) {
  std::string order;
  for (const PipelineStep& step : megatron_steps(shape, rank)) {
    if (step.kind == PipelineStep::Kind::compute) {
      order += step.action.work == PipelineWork::forward ? " F" : " B";
      order += std::to_string(step.action.micro_batch);
      order +=
          shape.stages_per_rank == 1 ? "" : "." + std::to_string(step.action.stage / shape.ranks);
    }
  }
  return order;
}

}  // namespace

TEST_CASE("Megatron's schedules end on every rank, with every message where it belongs") {
  int shapes = 0;
  for (int32_t ranks = 1; ranks <= 8; ++ranks) {
    for (int32_t stages = 1; stages <= 4; ++stages) {
      for (int32_t micro_batches = 1; micro_batches <= 16; ++micro_batches) {
        const PipelineShape shape{ranks, stages, micro_batches};
        if (why_no_megatron_schedule(shape).empty()) {
          INFO(ranks << " ranks, " << stages << " stages each, " << micro_batches);
          CHECK(Play(shape).run() == "");
          ++shapes;
        }
      }
    }
  }
  CHECK(shapes == 206);  // 8 x 16, and for 2 to 8 ranks 3 x the multiples of the ranks up to 16
}

// Narayanan et al. 2021, figures 3 and 4: four devices; 1F1B with 8 micro-batches, and two stages
// per device.
TEST_CASE("Megatron's schedules compute in the published order") {
  CHECK(order_of({4, 1, 8}, 3) == " F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7");
  CHECK(order_of({4, 1, 8}, 0) == " F0 F1 F2 F3 B0 F4 B1 F5 B2 F6 B3 F7 B4 B5 B6 B7");
  CHECK(order_of({4, 2, 4}, 3) ==
        " F0.0 F1.0 F2.0 F3.0 F0.1 B0.1 F1.1 B1.1 F2.1 B2.1 F3.1 B3.1 B0.0 B1.0 B2.0 B3.0");
}

TEST_CASE("the interleaved schedule needs micro-batches that the ranks divide") {
  CHECK(why_no_megatron_schedule({4, 2, 6}).find("(6) is not divisible") != std::string::npos);
  CHECK(why_no_megatron_schedule({1, 2, 6}).find("greater than 1") != std::string::npos);
  CHECK(why_no_megatron_schedule({4, 1, 6}).empty());
}

}  // namespace megatron_steps_test
