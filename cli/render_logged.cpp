// What the ranks logged at the end of the last epoch, beside what one device logs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/logged_metrics.hpp"
#include "cli/rehearsal.hpp"
#include "cli/render_finding.hpp"

namespace lockstep::cli {

namespace {

constexpr size_t ranks_listed_max = 4;

std::string values_of(const GlobalMetric& metric) {
  const auto differs = [&](const RankMetric& rank) {
    return rank.value != metric.ranks.front().value &&
           !(std::isnan(rank.value) && std::isnan(metric.ranks.front().value));
  };
  const double first = metric.ranks.front().value;
  if (metric.ranks.size() == 1) {
    return fmt::format("{:.6g} on rank {}", first, metric.ranks.front().rank);
  }
  if (std::none_of(metric.ranks.begin(), metric.ranks.end(), differs)) {
    return fmt::format("{:.6g} on all ranks", first);
  }
  std::string text;
  for (size_t i = 0; i < std::min(metric.ranks.size(), ranks_listed_max); ++i) {
    text += fmt::format("{}{:.6g} on rank {}", i == 0 ? "" : ", ", metric.ranks[i].value,
                        metric.ranks[i].rank);
  }
  return text + (metric.ranks.size() > ranks_listed_max ? ", .." : "");
}

}  // namespace

std::string render_logged(const Rehearsal& rehearsal) {
  if (rehearsal.logged.empty()) {
    return "";
  }
  size_t width = 0;
  for (const GlobalMetric& metric : rehearsal.logged) {
    width = std::max(width, metric.key.size());
  }
  std::string out = "logged at the end of the last epoch:\n";
  for (const GlobalMetric& metric : rehearsal.logged) {
    out += fmt::format("  {:<{}}  {}", metric.key, width, values_of(metric));
    if (metric.single_device) {
      out += fmt::format("; one device: {:.6g}", *metric.single_device);
    }
    if (!metric.rule.empty()) {
      out += fmt::format(" ({})", metric.rule);
    }
    out += "\n";
  }
  return out;
}

}  // namespace lockstep::cli
