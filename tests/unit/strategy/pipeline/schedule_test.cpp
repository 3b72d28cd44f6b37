#include "model/strategy/pipeline/schedule.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "model/strategy/pipeline/message_times.hpp"
#include "model/strategy/pipeline/pipeline_steps.hpp"

using namespace lockstep;

namespace schedule_test {

namespace {

using Kind = PipelineScheduleKind;

constexpr Kind every_kind[] = {Kind::gpipe,
                               Kind::one_forward_one_backward,
                               Kind::interleaved,
                               Kind::looped_breadth_first,
                               Kind::interleaved_zero_bubble,
                               Kind::zero_bubble_v,
                               Kind::dual_pipe_v,
                               Kind::pipe_dream,
                               Kind::pipe_dream_double_buffered};

PipelineSchedule schedule_of(Kind kind, int32_t ranks, int32_t micro_batches, int32_t each = 0) {
  const int32_t stages = each > 0 ? each : is_single_stage(kind) ? 1 : 2;
  return make_pipeline_schedule(kind, {ranks, stages, micro_batches, placement_of(kind)});
}

/// A stage's forward takes 1 and its backward 2 where a rank has one stage, and so many times less
/// where it has more.
double makespan_of(const PipelineSchedule& schedule, double input = 1, double weight = 1) {
  const double parts = schedule.shape.stages_per_rank;
  return makespan(schedule, {1 / parts, (input + weight) / parts, input / parts, weight / parts});
}

std::string text_of(const PipelineSchedule& schedule, int32_t rank) {
  std::string text;
  for (const auto& action : schedule.slots[static_cast<size_t>(rank)]) {
    if (action) {
      text += text.empty() ? "" : " ";
      text += "FBIW"[static_cast<size_t>(action->work)];
      text += std::to_string(action->stage) + "." + std::to_string(action->micro_batch);
    }
  }
  return text;
}

}  // namespace

// By simulation of four ranks and eight micro-batches, without communication (semantics: published
// bubbles (P - 1)(tf + tb) of GPipe and 1F1B, the same over v of the interleaved ones).
TEST_CASE("schedules take as long as their published bubbles say") {
  CHECK(makespan_of(schedule_of(Kind::gpipe, 4, 8)) == 33);
  CHECK(makespan_of(schedule_of(Kind::one_forward_one_backward, 4, 8)) == 33);
  CHECK(makespan_of(schedule_of(Kind::interleaved, 4, 8, 2)) == 28.5);
  CHECK(makespan_of(schedule_of(Kind::interleaved, 4, 8, 4)) == 26.25);
  CHECK(makespan_of(schedule_of(Kind::looped_breadth_first, 4, 8, 2)) == 28.5);
  CHECK(makespan_of(schedule_of(Kind::interleaved_zero_bubble, 4, 8, 1)) == 27);
  CHECK(makespan_of(schedule_of(Kind::interleaved_zero_bubble, 4, 8, 1), 1.5, 0.5) == 30);
  CHECK(makespan_of(schedule_of(Kind::zero_bubble_v, 4, 8)) == 25.5);
}

// The schedules of several stages begin a receive where the other rank begins its send, however
// long before they need it, and what they send next waits behind it: rank 0 sends no second
// micro-batch before the last rank has sent back the first (pytorch/pytorch, issue 188833 and pull
// request 165664). The values are those of tests/oracle/pipeline_message_times.py, which plays the
// recorded orders.
TEST_CASE("messages that wait for those before them make schedules of several stages longer") {
  const auto with_messages = [](Kind kind, int32_t micro_batches) {
    const PipelineSchedule schedule = schedule_of(kind, 4, micro_batches);
    const double parts = schedule.shape.stages_per_rank;
    return makespan_with_messages(pipeline_steps(kind, schedule),
                                  {1 / parts, 2 / parts, 1 / parts, 1 / parts});
  };
  CHECK(with_messages(Kind::gpipe, 8) == 33);
  CHECK(with_messages(Kind::one_forward_one_backward, 8) == 33);
  CHECK(with_messages(Kind::interleaved, 8) == 35);
  CHECK(with_messages(Kind::interleaved, 12) == 47);
  CHECK(with_messages(Kind::looped_breadth_first, 8) == 38.5);
  CHECK(with_messages(Kind::looped_breadth_first, 12) == 54.5);
  CHECK(with_messages(Kind::interleaved_zero_bubble, 8) == 29.5);
  CHECK(with_messages(Kind::zero_bubble_v, 12) == 39.5);
  CHECK(with_messages(Kind::dual_pipe_v, 12) == 52.5);
}

// (m + P - 1)(tf + tb) for any size.
TEST_CASE("GPipe and 1F1B idle for one micro-batch less than there are ranks") {
  for (int32_t ranks = 1; ranks <= 6; ++ranks) {
    for (int32_t micro_batches = ranks; micro_batches <= 12; ++micro_batches) {
      for (const Kind kind : {Kind::gpipe, Kind::one_forward_one_backward}) {
        CAPTURE(ranks, micro_batches);
        CHECK(makespan_of(schedule_of(kind, ranks, micro_batches)) ==
              3 * (micro_batches + ranks - 1));
      }
    }
  }
}

// Filling and emptying take (P - 1)(tf + tb) in all, as those of one step of 1F1B do, and nothing
// lies between: P ranks take 3 units of time for each further micro-batch.
TEST_CASE("asynchronous schedules fill the pipeline once for all micro-batches") {
  for (const Kind kind : {Kind::pipe_dream, Kind::pipe_dream_double_buffered}) {
    for (int32_t ranks = 1; ranks <= 6; ++ranks) {
      for (const int32_t micro_batches : {ranks, 2 * ranks, 16 * ranks}) {
        CAPTURE(ranks, micro_batches);
        const PipelineSchedule schedule = schedule_of(kind, ranks, micro_batches);
        CHECK(makespan_of(schedule) == 3 * (micro_batches + ranks - 1));
        CHECK(makespan_with_messages(pipeline_steps(kind, schedule), {}) ==
              3 * (micro_batches + ranks - 1));
      }
    }
  }
}

// A step ends anywhere: what comes before and behind it together is what is done without it.
TEST_CASE("steps of an asynchronous pipeline continue one another") {
  for (int32_t ranks = 1; ranks <= 5; ++ranks) {
    const AsynchronousOrder order{{ranks, 1, 12}, 12};
    for (int32_t rank = 0; rank < ranks; ++rank) {
      CAPTURE(ranks, rank);
      std::vector<PipelineStep> parts = order.steps(rank, 0, 5);
      std::ranges::copy(order.steps(rank, 5, 1), std::back_inserter(parts));
      std::ranges::copy(order.steps(rank, 6, 6), std::back_inserter(parts));
      CHECK(parts == order.steps(rank, 0, 12));
    }
  }
}

TEST_CASE("a rank holds activations of as many micro-batches as the schedule says") {
  for (int32_t rank = 0; rank < 4; ++rank) {
    CAPTURE(rank);
    CHECK(most_in_flight(schedule_of(Kind::gpipe, 4, 8), rank) == 8);
    CHECK(most_in_flight(schedule_of(Kind::one_forward_one_backward, 4, 8), rank) == 4 - rank);
    CHECK(most_in_flight(schedule_of(Kind::looped_breadth_first, 4, 8, 2), rank) == 16);
    // The warm-up (v - 1) P + 2 (P - 1 - rank), and the forward before the first backward.
    CHECK(most_in_flight(schedule_of(Kind::interleaved, 4, 8, 2), rank) == 4 + 2 * (3 - rank) + 1);
    // Until the gradients of weights: as many on every rank as there are ranks.
    CHECK(most_in_flight(schedule_of(Kind::interleaved_zero_bubble, 4, 8, 1), rank) == 4);
    CHECK(most_in_flight(schedule_of(Kind::zero_bubble_v, 4, 8), rank) == 8);
  }
}

TEST_CASE("orders of actions are those of torch") {
  CHECK(text_of(schedule_of(Kind::gpipe, 2, 2), 0) == "F0.0 F0.1 B0.0 B0.1");
  CHECK(text_of(schedule_of(Kind::one_forward_one_backward, 2, 3), 0) ==
        "F0.0 F0.1 B0.0 F0.2 B0.1 B0.2");
  CHECK(text_of(schedule_of(Kind::one_forward_one_backward, 2, 3), 1) ==
        "F1.0 B1.0 F1.1 B1.1 F1.2 B1.2");
  CHECK(text_of(schedule_of(Kind::looped_breadth_first, 2, 2), 1) ==
        "F1.0 F1.1 F3.0 F3.1 B3.1 B3.0 B1.1 B1.0");
  CHECK(text_of(schedule_of(Kind::interleaved, 2, 4), 0) ==
        "F0.0 F0.1 F2.0 F2.1 F0.2 B2.0 F0.3 B2.1 F2.2 B0.0 F2.3 B0.1 B2.2 B2.3 B0.2 B0.3");
  CHECK(text_of(schedule_of(Kind::interleaved_zero_bubble, 2, 2, 1), 1) ==
        "F1.0 I1.0 F1.1 I1.1 W1.0 W1.1");
  CHECK(text_of(schedule_of(Kind::zero_bubble_v, 1, 1), 0) == "F0.0 F1.0 I1.0 W1.0 I0.0 W0.0");
  CHECK(text_of(schedule_of(Kind::dual_pipe_v, 1, 2), 0) ==
        "F0.0 F1.0 F0.1 B1.0 F1.1 B0.0 B1.1 I0.1 W0.1");
}

namespace {

/// Every schedule of up to 8 ranks, 4 stages on each and 16 micro-batches that torch would make.
void for_each_schedule(const std::function<void(Kind, const PipelineSchedule&)>& look) {
  for (const Kind kind : every_kind) {
    for (int32_t ranks = 1; ranks <= 8; ++ranks) {
      for (int32_t each = 1; each <= 4; ++each) {
        for (int32_t micro_batches = 1; micro_batches <= 16; ++micro_batches) {
          const PipelineShape shape{ranks, each, micro_batches, placement_of(kind)};
          if (why_no_schedule(kind, shape).empty()) {
            CAPTURE(name_of(kind), ranks, each, micro_batches);
            look(kind, make_pipeline_schedule(kind, shape));
          }
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("every schedule computes everything once, in an order that ends") {
  for_each_schedule([](Kind, const PipelineSchedule& schedule) {
    const PipelineShape& shape = schedule.shape;
    CHECK(!first_that_waits_for_ever(schedule));
    std::map<std::tuple<int32_t, int32_t>, std::string> work;
    bool is_in_place = true;
    for (int32_t rank = 0; rank < shape.ranks; ++rank) {
      for (const auto& action : schedule.slots[static_cast<size_t>(rank)]) {
        if (action) {
          is_in_place = is_in_place && shape.rank_of(action->stage) == rank;
          work[{action->stage, action->micro_batch}] += "FBIW"[static_cast<size_t>(action->work)];
        }
      }
    }
    CHECK(is_in_place);
    CHECK(std::ssize(work) == int64_t{shape.stages()} * shape.micro_batches);
    CHECK(std::ranges::all_of(
        work, [](const auto& one) { return one.second == "FB" || one.second == "FIW"; }));
  });
}

TEST_CASE("an order in which an input never comes is found") {
  PipelineSchedule schedule = schedule_of(Kind::gpipe, 2, 2);
  std::swap(schedule.slots[1][0], schedule.slots[1][2]);  // a backward before its forward
  // Rank 1 never begins, and rank 0, which is looked at first, waits for a gradient of it.
  CHECK((first_that_waits_for_ever(schedule) == PipelineAction{PipelineWork::backward, 0, 0}));
}

namespace {

/// Plays the steps of all ranks: a batch of messages ends when each of them has met its
/// counterpart.
class Playback {
 public:
  Playback(Kind kind, const PipelineSchedule& schedule) : shape_(schedule.shape) {
    for (int32_t rank = 0; rank < shape_.ranks; ++rank) {
      ranks_.push_back({pipeline_steps(kind, schedule, rank)});
    }
  }

  /// Whether every rank comes to its end, has what it computes with, and the k-th message that one
  /// sends to another is the k-th that this one receives.
  bool ends() {
    for (bool goes_on = true; goes_on && has_inputs_;) {
      goes_on = false;
      for (int32_t rank = 0; rank < shape_.ranks; ++rank) {
        goes_on |= play(rank);
      }
    }
    return has_inputs_ && sent_ == received_ &&
           std::ranges::all_of(ranks_, [](const Own& own) { return own.next == own.steps.size(); });
  }

 private:
  /// The stage that computed it, the micro-batch, and what it is.
  using Message = std::tuple<int32_t, int32_t, PipelineMessage::Content>;
  struct Own {
    std::vector<PipelineStep> steps;
    size_t next = 0;
    size_t posted = 0;  ///< steps whose messages are posted
    std::set<Message> has{};
  };
  /// One queue for each direction between two ranks, as a communicator has.
  using Queues = std::map<std::pair<int32_t, int32_t>, std::vector<Message>>;

  static Message named(const PipelineMessage& message) {
    const bool is_activation = message.content == PipelineMessage::Content::activation;
    return {message.is_send ? message.stage : message.stage + (is_activation ? -1 : 1),
            message.micro_batch, message.content};
  }

  enum class Input : uint8_t { there, under_way, never_asked_for };

  Input input_of(int32_t rank, const PipelineAction& action) const {
    const bool is_forward = action.work == PipelineWork::forward;
    const int32_t made_by = action.stage + (is_forward ? -1 : 1);
    if (action.work == PipelineWork::weight_gradient || made_by < 0 || made_by == shape_.stages() ||
        shape_.rank_of(made_by) == rank) {
      return Input::there;
    }
    const Message message{
        made_by, action.micro_batch,
        is_forward ? PipelineMessage::Content::activation : PipelineMessage::Content::gradient};
    if (ranks_[static_cast<size_t>(rank)].has.contains(message)) {
      return Input::there;
    }
    const std::pair way(shape_.rank_of(made_by), rank);
    const auto asked = received_.find(way);
    const auto sent = sent_.find(way);
    if (asked == received_.end()) {
      return Input::never_asked_for;
    }
    const auto place = std::ranges::find(asked->second, message) - asked->second.begin();
    if (place == std::ssize(asked->second)) {
      return Input::never_asked_for;
    }
    const bool has_come = sent != sent_.end() && place < std::ssize(sent->second);
    return has_come ? Input::there : Input::under_way;
  }

  void post(int32_t rank, const PipelineStep& step) {
    for (const PipelineMessage& message : step.messages) {
      (message.is_send ? sent_[{rank, message.peer}] : received_[{message.peer, rank}])
          .push_back(named(message));
    }
  }

  bool have_met(int32_t rank, const PipelineStep& step) {
    return std::ranges::all_of(step.messages, [&](const PipelineMessage& message) {
      const std::pair way =
          message.is_send ? std::pair(rank, message.peer) : std::pair(message.peer, rank);
      return message.is_send ? received_[way].size() >= sent_[way].size()
                             : sent_[way].size() >= received_[way].size();
    });
  }

  bool play(int32_t rank) {
    Own& own = ranks_[static_cast<size_t>(rank)];
    const size_t first = own.next;
    for (; own.next < own.steps.size(); ++own.next) {
      const PipelineStep& step = own.steps[own.next];
      if (step.kind == PipelineStep::Kind::compute) {
        const Input input = input_of(rank, step.action);
        has_inputs_ = has_inputs_ && input != Input::never_asked_for;
        if (input == Input::under_way) {
          break;
        }
      }
      if (own.posted <= own.next) {
        own.posted = own.next + 1;
        post(rank, step);
      }
      if (step.kind == PipelineStep::Kind::exchange) {
        if (!have_met(rank, step)) {
          break;
        }
        for (const PipelineMessage& message : step.messages) {
          own.has.insert(named(message));
        }
      }
    }
    return own.next > first;
  }

  const PipelineShape shape_;
  std::vector<Own> ranks_;
  Queues sent_;
  Queues received_;
  bool has_inputs_ = true;
};

}  // namespace

TEST_CASE("the messages of every schedule meet, in one order on both sides") {
  for_each_schedule(
      [](Kind kind, const PipelineSchedule& schedule) { CHECK(Playback(kind, schedule).ends()); });
}

// torch fuses what it sends with what it receives next, lest neighbours wait for one another.
TEST_CASE("1F1B exchanges in both directions at once in its steady state") {
  const PipelineSchedule schedule = schedule_of(Kind::one_forward_one_backward, 2, 2);
  const std::vector<PipelineStep> steps =
      pipeline_steps(Kind::one_forward_one_backward, schedule, 0);
  using Content = PipelineMessage::Content;
  const auto is_exchange = [](const PipelineStep& step) {
    return step.kind == PipelineStep::Kind::exchange;
  };
  const auto first = std::ranges::find_if(steps, is_exchange);
  REQUIRE(first != steps.end());
  CHECK(first->messages == std::vector<PipelineMessage>{{Content::activation, true, 0, 1, 1},
                                                        {Content::gradient, false, 0, 0, 1}});
}

TEST_CASE("schedules are refused as torch refuses them") {
  const auto why = [](Kind kind, int32_t ranks, int32_t each, int32_t micro_batches) {
    return why_no_schedule(kind, {ranks, each, micro_batches, placement_of(kind)});
  };
  CHECK(why(Kind::gpipe, 4, 1, 1).empty());
  CHECK(!why(Kind::one_forward_one_backward, 4, 1, 3).empty());
  CHECK(!why(Kind::gpipe, 2, 2, 4).empty());
  CHECK(!why(Kind::zero_bubble_v, 2, 1, 4).empty());
  CHECK(!why(Kind::dual_pipe_v, 2, 2, 3).empty());
  CHECK(why(Kind::dual_pipe_v, 2, 2, 4).empty());
  // Two rounds of an odd number.
  CHECK(!why(Kind::interleaved, 4, 2, 9).empty());
  CHECK(why(Kind::interleaved, 4, 2, 8).empty());
}

TEST_CASE("schedules have torch's names") {
  CHECK(pipeline_schedule_named("1f1b") == Kind::one_forward_one_backward);
  CHECK(pipeline_schedule_named("ScheduleGPipe") == Kind::gpipe);
  CHECK(pipeline_schedule_named("ZBVZeroBubble") == Kind::zero_bubble_v);
  CHECK(!pipeline_schedule_named("2F2B"));
}

}  // namespace schedule_test
