#include "rehearsal/findings/expert_load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

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
  return idle == 0 ? line + "\n"
                   : fmt::format("{}; {} got no token\n", line, plural(idle, "expert"));
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

std::string expert_load_text(const OneRun& run) {
  const std::vector<ExpertLoad> loads = expert_loads(run);
  std::string text;
  for (size_t i = 0; i < std::min(loads.size(), most_lines); ++i) {
    text += line_of(loads[i]);
  }
  return loads.size() <= most_lines ? text
                                    : fmt::format("{}experts of {} more layers: not shown\n", text,
                                                  loads.size() - most_lines);
}

}  // namespace lockstep::cli
