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

std::optional<WeightSpread> weight_spread(const OneRun& run) {
  if (run.preparation.log == nullptr || !replicas_differ_by_design(run)) {
    return std::nullopt;
  }
  std::vector<std::pair<std::string, RangeOfRanks>> parameters;
  std::map<std::string, size_t> place;
  for (const NamedValues& values : parameters_of(run)) {
    if (values.first_element) {  // a server's, beside what every worker has
      continue;
    }
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
    const double apart = range.apart();
    if (apart > spread.apart || (std::isnan(apart) && !std::isnan(spread.apart))) {
      spread = {apart, name};
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

namespace {

std::string over_time_text(const WeightSpreads& spreads, double in_the_end,
                           const std::vector<std::string>& names) {
  if (spreads.empty()) {
    return "";
  }
  const WeightSpreads::OfStep& greatest = *spreads.greatest;
  if (greatest.apart == in_the_end) {
    return in_the_end == 0 ? ", as after every step" : ", no less than after any step";
  }
  return fmt::format("; after step {} they were furthest apart, {:.3g} in {}", greatest.step,
                     greatest.apart, names.at(spreads.parameter));
}

}  // namespace

std::string weight_spread_text(const OneRun& run) {
  std::string text;
  if (const std::optional<WeightSpread> spread = weight_spread(run)) {
    text += spread->parameter.empty()
                ? "weights: all ranks end with the same"
                : fmt::format("weights: each rank ends with its own, up to {:.3g} apart in {}",
                              spread->apart, spread->parameter);
    text += over_time_text(run.weight_spreads, spread->apart, parameter_names(run)) + "\n";
  }
  if (const std::optional<double> error = compression_error(run)) {
    text += std::isnan(*error)
                ? "compression: some chunk held an infinite number or a NaN, and arrived as NaN\n"
                : fmt::format("compression: no number that was sent changed by more than {:.3g}\n",
                              *error);
  }
  return text;
}

}  // namespace lockstep::cli
