// Orders of actions and messages against those of torch.distributed.pipelining (torch 2.11), which
// tests/oracle/pipeline_schedules.py has recorded.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "model/strategy/pipeline/pipeline_steps.hpp"

using namespace lockstep;

namespace recorded_schedules_test {
using nlohmann::json;

namespace {

using Kind = PipelineScheduleKind;

json recorded_settings(Kind kind) {
  const std::string path =
      fmt::format("{}/tests/data/oracle/pipeline/{}.json", LOCKSTEP_SOURCE_DIR, name_of(kind));
  std::ifstream file(path);
  INFO(path);
  REQUIRE(file);
  const json read = json::parse(file);
  REQUIRE(read.at("schedule") == name_of(kind));
  return read.at("settings");
}

PipelineShape shape_of(const json& setting, Kind kind) {
  const int32_t ranks = setting.at("ranks");
  const int32_t stages = setting.at("stages");
  return {ranks, stages / ranks, setting.at("micro_batches"), placement_of(kind)};
}

std::string word_of(const PipelineAction& action) {
  return fmt::format("{}{}{}", action.stage, "FBIW"[static_cast<size_t>(action.work)],
                     action.micro_batch);
}

std::string word_of(const PipelineMessage& message) {
  const bool is_activation = message.content == PipelineMessage::Content::activation;
  return fmt::format("{}{}_{}{}", message.stage, message.is_send ? "SEND" : "RECV",
                     is_activation ? "F" : "B", message.micro_batch);
}

std::string actions_text(const PipelineSchedule& schedule, int32_t rank) {
  std::vector<std::string> words;
  for (const auto& action : schedule.slots[static_cast<size_t>(rank)]) {
    if (action) {
      words.push_back(word_of(*action));
    }
  }
  return fmt::format("{}", fmt::join(words, " "));
}

/// Actions, and each batch of messages where it is begun.
std::string batches_text(Kind kind, const PipelineSchedule& schedule, int32_t rank) {
  std::vector<std::string> words;
  for (const PipelineStep& step : pipeline_steps(kind, schedule, rank)) {
    if (step.kind == PipelineStep::Kind::compute) {
      words.push_back(word_of(step.action));
    } else if (!step.messages.empty()) {
      std::vector<std::string> messages;
      for (const PipelineMessage& message : step.messages) {
        messages.push_back(word_of(message));
      }
      words.push_back(fmt::format("({})", fmt::join(messages, ";")));
    }
  }
  return fmt::format("{}", fmt::join(words, " "));
}

/// Actions and messages, each where it is begun. torch makes them apart, too.
std::string messages_text(Kind kind, const PipelineSchedule& schedule, int32_t rank) {
  std::string text = batches_text(kind, schedule, rank);
  std::erase_if(text, [](char letter) { return letter == '(' || letter == ')'; });
  return text;
}

/// How many settings torch makes a schedule for, and how many it refuses.
struct Compared {
  int made = 0;
  int refused = 0;
};

Compared compare(Kind kind) {
  Compared compared;
  for (const json& setting : recorded_settings(kind)) {
    const PipelineShape shape = shape_of(setting, kind);
    CAPTURE(name_of(kind), shape.ranks, shape.stages(), shape.micro_batches);
    const std::string why = why_no_schedule(kind, shape);
    CHECK(why.empty() != setting.contains("refused"));
    if (setting.contains("refused") || !why.empty()) {
      CHECK(setting.value("refused", "").find(why) != std::string::npos);
      ++compared.refused;
      continue;
    }
    ++compared.made;
    const PipelineSchedule schedule = make_pipeline_schedule(kind, shape);
    for (int32_t rank = 0; rank < shape.ranks; ++rank) {
      CAPTURE(rank);
      CHECK((is_single_stage(kind) ? batches_text(kind, schedule, rank)
                                   : actions_text(schedule, rank)) ==
            setting.at("actions").at(static_cast<size_t>(rank)));
      if (!is_single_stage(kind)) {
        CHECK(messages_text(kind, schedule, rank) ==
              setting.at("with_messages").at(static_cast<size_t>(rank)));
      }
    }
  }
  return compared;
}

}  // namespace

TEST_CASE("GPipe and 1F1B compute and exchange in the order of torch") {
  CHECK(compare(Kind::gpipe).made == 27);
  const Compared compared = compare(Kind::one_forward_one_backward);
  CHECK(compared.made == 21);
  CHECK(compared.refused == 6);
}

TEST_CASE("schedules of several stages compute and exchange in the order of torch") {
  // 9 and 11 micro-batches are no multiple of the rounds of 2 ranks, 11 of those of 3, both of 4.
  for (const Kind kind : {Kind::interleaved, Kind::interleaved_zero_bubble}) {
    const Compared compared = compare(kind);
    CHECK(compared.made + compared.refused == 81);
    CHECK(compared.refused == 15);
  }
  CHECK(compare(Kind::looped_breadth_first).made == 81);
  CHECK(compare(Kind::zero_bubble_v).made == 27);
  const Compared compared = compare(Kind::dual_pipe_v);
  CHECK(compared.made == 15);
  CHECK(compared.refused == 12);
}

}  // namespace recorded_schedules_test
