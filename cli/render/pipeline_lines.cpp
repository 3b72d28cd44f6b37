#include "cli/render/pipeline_lines.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "model/strategy/pipeline/pipeline_marks.hpp"
#include "rehearsal/findings/expert_load.hpp"
#include "rehearsal/measure/device_use.hpp"
#include "rehearsal/measure/pipeline_times.hpp"
#include "rehearsal/text/number_text.hpp"

namespace lockstep::cli {

namespace {

constexpr size_t most_rank_lines = 64;
constexpr size_t most_wait_lines = 12;
constexpr size_t most_waits_in_json = 1000;
/// Parts below one in so many are left out of the text.
constexpr int64_t least_share_shown = 100;

/// The rank that holds a stage.
int32_t rank_with(const PipelineTimes& times, int32_t stage) {
  for (const TimesOfPipelineRank& rank : times.ranks) {
    if (std::ranges::find(rank.stages, stage) != rank.stages.end()) {
      return rank.rank;
    }
  }
  return -1;
}

std::string reason_of(const PipelineTimes& times, const TimedAction& wait) {
  if (!wait.waited_for) {
    return wait.action.work == PipelineWork::forward && wait.action.stage == 0
               ? "for the step before, or its batch"
               : "for the exchange before it";
  }
  const std::string on = fmt::format("for {} on rank {}", text_of(*wait.waited_for),
                                     rank_with(times, wait.waited_for->stage));
  return wait.after_input * least_share_shown > wait.waited
             ? fmt::format("{}, {} of it after that one's end", on,
                           time_text(wait.after_input.count()))
             : on;
}

std::string rank_lines(const PipelineTimes& times) {
  std::string out =
      fmt::format("  {:>4}  {:<8} {:>10} {:>10} {:>10} {:>10} {:>10} {:>6} {:>10}\n", "rank",
                  "stages", "forward", "backward", "weights", "waits", "idle", "held", "memory");
  for (size_t i = 0; i < std::min(times.ranks.size(), most_rank_lines); ++i) {
    const TimesOfPipelineRank& rank = times.ranks[i];
    out += fmt::format("  {:>4}  {:<8} {:>10} {:>10} {:>10} {:>10} {:>10} {:>6} {:>10}\n",
                       rank.rank, fmt::format("{}", fmt::join(rank.stages, ", ")),
                       time_text(rank.forward.count()), time_text(rank.backward.count()),
                       time_text(rank.weight_gradient.count()), time_text(rank.waited.count()),
                       time_text(rank.step.idle.count()), rank.most_held,
                       bytes_text(rank.memory_peak.count()));
  }
  if (times.ranks.size() > most_rank_lines) {
    out += fmt::format("  {} more ranks: not shown\n", times.ranks.size() - most_rank_lines);
  }
  return out;
}

Json action_json(const PipelineAction& action) {
  return {
      {"work", name_of(action.work)}, {"stage", action.stage}, {"micro_batch", action.micro_batch}};
}

Json wait_json(const PipelineTimes& times, const TimedAction& wait) {
  Json json = action_json(wait.action);
  json["rank"] = wait.rank;
  json["start_s"] = seconds(wait.start);
  json["waited_s"] = seconds(wait.waited);
  json["waited_for"] = nullptr;
  if (wait.waited_for) {
    json["waited_for"] = action_json(*wait.waited_for);
    json["waited_for"]["rank"] = rank_with(times, wait.waited_for->stage);
    json["waited_for"]["since_its_end_s"] = seconds(wait.after_input);
  }
  return json;
}

}  // namespace

std::string render_devices(const Rehearsal& rehearsal) {
  const std::vector<DeviceUse> devices = device_use(rehearsal.run);
  std::string out = devices.empty() ? "" : "\nDevices of rank 0 (one step)\n";
  for (size_t device = 0; device < devices.size(); ++device) {
    const DeviceUse& use = devices[device];
    out += fmt::format("  device {}  busy {:>10}  {:>5}  memory {:>10}\n", device,
                       time_text(use.busy.count()), percent_text(busy_share({use})),
                       bytes_text(use.memory_peak.count()));
  }
  return out;
}

Json devices_json(const Rehearsal& rehearsal) {
  Json all = Json::array();
  for (const DeviceUse& use : device_use(rehearsal.run)) {
    all.push_back({{"busy_s", seconds(use.busy)},
                   {"busy", busy_share({use})},
                   {"memory_peak_bytes", use.memory_peak.count()}});
  }
  return all;
}

std::string bubble_text(const Prediction& prediction) {
  constexpr double told_from = 0.005;
  const PipelineBubble ideal = prediction.ideal_bubble.value_or(PipelineBubble{});
  std::string text = fmt::format("of a step its ranks idle on average, {} by the schedule alone",
                                 percent_text(ideal.of_schedule));
  if (ideal.with_messages - ideal.of_schedule >= told_from) {
    text += fmt::format(", {} with the order of its messages", percent_text(ideal.with_messages));
  }
  return text;
}

std::string render_pipeline(const Rehearsal& rehearsal) {
  const auto times = pipeline_times(rehearsal.run, rehearsal.results);
  if (!times) {
    return "";
  }
  std::string out = "\nStages of the pipeline (one step; held: micro-batches in flight)\n";
  out += rank_lines(*times);
  std::vector<TimedAction> waits = longest_waits(*times, most_wait_lines);
  const Time longest = waits.empty() ? Time{} : waits.front().waited;
  std::erase_if(waits, [longest](const TimedAction& wait) {
    return wait.waited * least_share_shown < longest;
  });
  out += waits.empty() ? "" : "\nWho waits longest for whom (one step)\n";
  for (const TimedAction& wait : waits) {
    out += fmt::format("  {:>10}  rank {}, before {}: {}\n", time_text(wait.waited.count()),
                       wait.rank, text_of(wait.action), reason_of(*times, wait));
  }
  return out;
}

Json pipeline_json(const Rehearsal& rehearsal) {
  const auto times = pipeline_times(rehearsal.run, rehearsal.results);
  if (!times) {
    return nullptr;
  }
  Json json;
  json["ranks"] = Json::array();
  for (const TimesOfPipelineRank& rank : times->ranks) {
    json["ranks"].push_back({{"rank", rank.rank},
                             {"stages", rank.stages},
                             {"forward_s", seconds(rank.forward)},
                             {"backward_s", seconds(rank.backward)},
                             {"weight_gradient_s", seconds(rank.weight_gradient)},
                             {"waited_s", seconds(rank.waited)},
                             {"idle_s", seconds(rank.step.idle)},
                             {"exposed_communication_s", seconds(rank.step.exposed_communication)},
                             {"micro_batches_in_flight", rank.most_held},
                             {"memory_peak_bytes", rank.memory_peak.count()}});
  }
  json["waits"] = Json::array();
  for (const TimedAction& wait : longest_waits(*times, most_waits_in_json)) {
    json["waits"].push_back(wait_json(*times, wait));
  }
  return json;
}

Json experts_json(const OneRun& run) {
  Json all = Json::array();
  for (const ExpertLoad& load : expert_loads(run)) {
    all.push_back({{"layer", load.layer},
                   {"choices", load.choices},
                   {"imbalance", imbalance_of(load)},
                   {"dropped", load.dropped},
                   {"assumed", false}});
  }
  if (const std::optional<AssumedExpertLoad> assumed = assumed_expert_load(run)) {
    for (const std::string& layer : assumed->layers) {
      all.push_back({{"layer", layer},
                     {"choices", nullptr},
                     {"imbalance", assumed->imbalance},
                     {"dropped", nullptr},
                     {"assumed", true}});
    }
  }
  return all;
}

}  // namespace lockstep::cli
