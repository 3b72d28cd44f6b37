#include "rehearsal/findings/expert_load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "model/network/network.hpp"
#include "rehearsal/text/number_text.hpp"

namespace lockstep::cli {

namespace {

constexpr size_t most_lines = 4;

int64_t choices_of(const ExpertLoad& load) {
  return std::accumulate(load.choices.begin(), load.choices.end(), int64_t{0});
}

std::string line_of(const ExpertLoad& load) {
  const auto [least, most] = std::ranges::minmax(load.choices);
  std::string line =
      fmt::format("experts of {}: {} to {} of {} choices each, the busiest {:.3g} x the mean",
                  load.layer, least, most, choices_of(load), imbalance_of(load));
  const auto idle = std::ranges::count(load.choices, 0);
  line += idle == 0 ? "" : fmt::format("; {} got no token", plural(idle, "expert"));
  line +=
      load.dropped == 0
          ? ""
          : fmt::format(
                "; {} of the choices ({:.3g} %) are dropped by the "
                "capacity",
                load.dropped,
                100.0 * static_cast<double>(load.dropped) / static_cast<double>(choices_of(load)));
  return line + "\n";
}

std::string text_of_assumed(const AssumedExpertLoad& assumed) {
  std::string text =
      fmt::format("experts of {}: no values are computed; assumed: ",
                  assumed.layers.size() == 1 ? assumed.layers.front()
                                             : plural(std::ssize(assumed.layers), "layer"));
  text += assumed.imbalance > 1
              ? fmt::format("the busiest rank computes {:.3g} x the mean", assumed.imbalance)
              : std::string("all get the same number of tokens");
  return text + (assumed.dropped_part > 0
                     ? fmt::format(", and {:.3g} % of the choices are dropped by the capacity\n",
                                   100 * assumed.dropped_part)
                     : std::string(", and none is dropped\n"));
}

}  // namespace

std::vector<ExpertLoad> expert_loads(const OneRun& run) {
  std::vector<ExpertLoad> all;
  if (run.preparation.log == nullptr) {
    return all;
  }
  for (const RankLog& rank : run.preparation.log->ranks) {
    for (const ExpertLoad& load : rank.expert_loads) {
      const auto found = std::ranges::find(all, load.layer, &ExpertLoad::layer);
      if (found == all.end()) {
        all.push_back(load);
        continue;
      }
      for (size_t expert = 0; expert < load.choices.size(); ++expert) {
        found->choices[expert] += load.choices[expert];
      }
      found->dropped += load.dropped;
    }
  }
  return all;
}

double imbalance_of(const ExpertLoad& load) {
  const int64_t all = choices_of(load);
  return all == 0 ? 1
                  : static_cast<double>(std::ranges::max(load.choices)) *
                        static_cast<double>(load.choices.size()) / static_cast<double>(all);
}

std::optional<AssumedExpertLoad> assumed_expert_load(const OneRun& run) {
  const TrainingPlan& plan = run.preparation.plan;
  if (plan.network == nullptr || plan.numerics) {
    return std::nullopt;
  }
  AssumedExpertLoad assumed;
  for (const Layer& layer : plan.network->layers) {
    if (const auto* mixture = std::get_if<MixtureArguments>(&layer.arguments)) {
      assumed.layers.push_back(layer.name);
      assumed.imbalance = std::max(assumed.imbalance, mixture->ranks > 1 ? mixture->imbalance : 1);
      assumed.dropped_part =
          std::max(assumed.dropped_part, 1 - std::min(1.0, mixture->capacity_factor.value_or(1)));
    }
  }
  return assumed.layers.empty() ? std::nullopt : std::optional(std::move(assumed));
}

std::string expert_load_text(const OneRun& run, bool verbose) {
  if (const std::optional<AssumedExpertLoad> assumed = assumed_expert_load(run)) {
    return text_of_assumed(*assumed);
  }
  const std::vector<ExpertLoad> loads = expert_loads(run);
  const size_t shown = verbose ? loads.size() : std::min(loads.size(), most_lines);
  std::string text;
  for (size_t i = 0; i < shown; ++i) {
    text += line_of(loads[i]);
  }
  return loads.size() <= shown ? text
                               : fmt::format("{}experts of {} more layers: -v shows them\n", text,
                                             loads.size() - shown);
}

}  // namespace lockstep::cli
