#include "rehearsal/findings/weight_spread.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "rehearsal/findings/invariants.hpp"
#include "rehearsal/findings/known_differences.hpp"

namespace lockstep::cli {

namespace {

/// Of one parameter, over the ranks seen so far.
struct RangeOfRanks {
  std::vector<double> least;
  std::vector<double> most;

  void add(const Values& values) {
    if (least.empty()) {
      least.assign(static_cast<size_t>(values.size()), std::numeric_limits<double>::infinity());
      most.assign(least.size(), -std::numeric_limits<double>::infinity());
    }
    for (size_t i = 0; i < least.size(); ++i) {
      const double number = values.number(static_cast<int64_t>(i));
      // A NaN stays: it is as far apart as can be.
      least[i] = std::isnan(number) ? number : std::min(least[i], number);
      most[i] = std::isnan(number) ? number : std::max(most[i], number);
    }
  }
};

}  // namespace

std::optional<WeightSpread> weight_spread(const OneRun& run) {
  if (run.preparation.log == nullptr || !replicas_have_weights_of_their_own(run)) {
    return std::nullopt;
  }
  std::vector<std::pair<std::string, RangeOfRanks>> parameters;
  std::map<std::string, size_t> place;
  for (const NamedValues& values : parameters_of(run)) {
    const auto [at, is_new] = place.try_emplace(values.name, parameters.size());
    if (is_new) {
      parameters.emplace_back(values.name, RangeOfRanks());
    }
    parameters[at->second].second.add(values.values);
  }
  if (parameters.empty()) {
    return std::nullopt;
  }
  WeightSpread spread;
  for (const auto& [name, range] : parameters) {
    for (size_t i = 0; i < range.least.size(); ++i) {
      const double apart = range.most[i] - range.least[i];
      if (apart > spread.apart || (std::isnan(apart) && !std::isnan(spread.apart))) {
        spread = {apart, name};
      }
    }
  }
  return spread;
}

std::optional<double> compression_error(const OneRun& run) {
  std::optional<double> largest;
  if (run.preparation.log == nullptr) {
    return largest;
  }
  for (const RankLog& rank : run.preparation.log->ranks) {
    if (const std::optional<double> error = rank.compression_error) {
      largest = largest && !(*error > *largest) && !std::isnan(*error) ? largest : error;
    }
  }
  return largest;
}

std::string weight_spread_text(const OneRun& run) {
  std::string text;
  if (const std::optional<WeightSpread> spread = weight_spread(run)) {
    text += spread->parameter.empty()
                ? "weights: all ranks end with the same\n"
                : fmt::format("weights: each rank ends with its own, up to {:.3g} apart in {}\n",
                              spread->apart, spread->parameter);
  }
  if (const std::optional<double> error = compression_error(run)) {
    text +=
        fmt::format("compression: no number that was sent changed by more than {:.3g}\n", *error);
  }
  return text;
}

}  // namespace lockstep::cli
