#include "properties/logged/metric_is_global.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "properties/logged/rounding.hpp"
#include "properties/logged/value_text.hpp"

namespace lockstep {

namespace {

// Values are fp32: one rounding for each batch and rank that is added, some for what follows.
constexpr int64_t roundings_beside = 16;

double bound_of(const GlobalMetric& metric, int64_t more_roundings = 0) {
  int64_t operations = roundings_beside + more_roundings;
  double magnitude = std::abs(metric.single_device.value_or(0));
  for (const RankMetric& rank : metric.ranks) {
    operations += 1 + rank.batches;
    magnitude = std::max(magnitude, std::abs(rank.value));
  }
  return (2 * gamma(operations, DType::fp32) + metric.network_error) * magnitude;
}

// Compares values of two runs, which sum in different orders. The roundings of a long sum go up as
// often as down (Higham, Accuracy and Stability, 2.8): they grow as its root, eight times which no
// sum in practice reaches.
bool is_beyond(const GlobalMetric& metric, double logged, double right) {
  const double sums = 8 * std::sqrt(static_cast<double>(metric.elements));
  return beyond_rounding(logged, right, bound_of(metric, static_cast<int64_t>(sums)));
}

bool is_beyond_one_device(const GlobalMetric& metric, double logged) {
  return is_beyond(metric, logged, *metric.single_device);
}

// It differs from one device, and by more than the samples that were taken twice or never.
bool is_wrong(const GlobalMetric& metric, double logged) {
  return metric.single_device && !metric.is_stale && is_beyond_one_device(metric, logged) &&
         !(metric.of_taken_samples && !is_beyond(metric, logged, *metric.of_taken_samples));
}

RankSet ranks_of(const GlobalMetric& metric) {
  RankSet ranks;
  for (const RankMetric& rank : metric.ranks) {
    ranks.add(rank.rank);
  }
  return ranks;
}

// "rank 0 0.666667, rank 1 0.857143, ..".
std::string listed(const GlobalMetric& metric, double RankMetric::*which) {
  constexpr size_t most_listed = 4;
  std::string text;
  for (size_t i = 0; i < std::min(metric.ranks.size(), most_listed); ++i) {
    text += fmt::format("{}rank {} {}", i == 0 ? "" : ", ", metric.ranks[i].rank,
                        value_text(metric.ranks[i].*which));
  }
  return text + (metric.ranks.size() > most_listed ? ", .." : "");
}

std::string error_text(double logged, double right) {
  const std::string share =
      right == 0 ? "" : fmt::format(", {:+.3g} %", 100 * (logged - right) / std::abs(right));
  return fmt::format("{:+.3g}{}", logged - right, share);
}

Finding finding_for(const char* code, Level level, const GlobalMetric& metric, std::string title) {
  Finding finding = finding_of(code, level, std::move(title));
  finding.ranks = ranks_of(metric);
  finding.sites.push_back({metric.site, SiteRole::subject, fmt::format("logs `{}`", metric.key)});
  return finding;
}

bool differ(const GlobalMetric& metric) {
  const double first = metric.ranks.front().value;
  const double bound = bound_of(metric);
  return std::any_of(metric.ranks.begin(), metric.ranks.end(), [&](const RankMetric& rank) {
    return beyond_rounding(rank.value, first, bound);
  });
}

void tell_single_device(const GlobalMetric& metric, double logged, Finding& finding) {
  if (metric.single_device) {
    finding.follows.push_back(fmt::format("all samples together give {} (error {})",
                                          value_text(*metric.single_device),
                                          error_text(logged, *metric.single_device)));
  }
}

/// The weight of a mean, over all ranks, and what an int64 kept of its mean.
struct Weight {
  int64_t samples = 0;
  int64_t ranks = 0;
  int64_t kept = 0;
  bool is_whole() const { return kept == 0 || samples == kept * ranks; }
  double factor() const { return static_cast<double>(samples) / static_cast<double>(kept * ranks); }
};

Weight weight_of(const GlobalMetric& metric) {
  Weight weight{0, static_cast<int64_t>(metric.ranks.size()),
                metric.ranks.front().common_batch_sizes};
  for (const RankMetric& rank : metric.ranks) {
    weight.samples += rank.batch_sizes;
  }
  return weight;
}

std::optional<Finding> lost_fraction(const GlobalMetric& metric) {
  const Weight weight = weight_of(metric);
  if (!metric.synchronised || weight.is_whole()) {
    return std::nullopt;
  }
  const double factor = weight.factor();
  const double logged = metric.ranks.front().value;
  Finding finding =
      finding_for("LS307", Level::error, metric,
                  fmt::format("`{}` is logged {:.6g} times too large: its weight lost a fraction",
                              metric.key, factor));
  finding.why.text = fmt::format("{} samples on {} ranks average to {:.6g}, and the int64 holds {}",
                                 weight.samples, weight.ranks,
                                 factor * static_cast<double>(weight.kept), weight.kept);
  if (!metric.is_stand_in) {
    finding.follows.push_back(
        fmt::format("{} is logged instead of {}", value_text(logged), value_text(logged / factor)));
  }
  finding.fix = {
      "make the number of samples a multiple of the ranks (drop_last, or a batch_size "
      "that divides),",
      "or log a metric object: metrics: {mean: MeanMetric}"};
  return finding;
}

// By its own wish (rank_zero_only), or because only some ranks come to the statement. Where they
// reduce it, they pair with others or wait for them, which is reported as such.
bool is_of_some_ranks(const GlobalMetric& metric) {
  return metric.rank_zero_only ||
         (!metric.synchronised && std::ssize(metric.ranks) < metric.world_size);
}

std::vector<std::string> remedy_for_one_rank(const GlobalMetric& metric) {
  const bool guarded = is_of_some_ranks(metric) && !metric.rank_zero_only;
  if (metric.is_object) {
    return {"let it synchronise: sync_on_compute: true"};
  }
  std::vector<std::string> fix;
  if (metric.rule.empty()) {
    fix = {metric.rank_zero_only ? "remove rank_zero_only, and add sync_dist: true"
           : guarded             ? "take it out of the guard, and add sync_dist: true"
                                 : "add sync_dist: true"};
  } else {
    fix = {metric.remedy, "sync_dist would average it, and " + metric.rule};
    if (guarded) {
      fix.push_back("on all ranks: take it out of the guard");
    }
  }
  if (metric.is_out_of_reach && metric.rule.empty()) {
    fix.push_back("and move it before, as it is on the CPU: {copy: {tensor: NAME, to: device}}");
  }
  return fix;
}

std::optional<Finding> of_one_rank(const GlobalMetric& metric) {
  const double logged = metric.ranks.front().value;
  const bool alone = is_of_some_ranks(metric) &&
                     (metric.rule.empty() || metric.ranks.size() == 1 || differ(metric)) &&
                     is_wrong(metric, logged);
  // A common reduction gives one value, unless ranks reduce different things: LS103, LS303.
  const bool is_common = metric.rank_zero_only || (metric.synchronised && !metric.is_object);
  if (!alone && (is_common || !differ(metric))) {
    return std::nullopt;
  }
  const Level level = !metric.in_training   ? Level::error
                      : metric.is_monitored ? Level::warning
                                            : Level::note;
  Finding finding = finding_for(
      "LS302", level, metric,
      alone ? fmt::format("`{}` is logged by {} only, and is not the value of all samples",
                          metric.key, ranks_of(metric).phrase())
            : fmt::format("each rank logs a different `{}`; only rank 0's value is written",
                          metric.key));
  finding.why.text = metric.is_stand_in
                         ? "it is made of the rank's own batches (losses are not computed here)"
                         : listed(metric, &RankMetric::value);
  tell_single_device(metric, logged, finding);
  finding.follows.push_back(
      fmt::format("{} (checkpoints, early stopping, schedulers) decide separately on each rank",
                  callbacks_that_monitor));
  finding.fix = remedy_for_one_rank(metric);
  return finding;
}

// What is written is rank 0's value, or a reduction to which every rank gives its own.
std::optional<Finding> of_missing_loss(const GlobalMetric& metric) {
  const bool is_first = metric.ranks.front().is_of_missing_loss;
  RankSet without;
  for (const RankMetric& rank : metric.ranks) {
    if (rank.is_of_missing_loss) {
      without.add(rank.rank);
    }
  }
  if (without.empty() || !(is_first || metric.synchronised || metric.is_monitored)) {
    return std::nullopt;
  }
  Finding finding =
      finding_for("LS302", Level::error, metric,
                  fmt::format("`{}` is made of a loss that {} {} not have", metric.key,
                              without.phrase(), without.size() == 1 ? "does" : "do"));
  finding.why.text = metric.why_without_loss;
  finding.follows.push_back(
      metric.synchronised
          ? fmt::format("the {} over the ranks counts their placeholder, too", metric.reduction)
          : "only rank 0's value is written" +
                (metric.is_stand_in ? "" : ": " + listed(metric, &RankMetric::value)));
  tell_single_device(metric, metric.ranks.front().value, finding);
  finding.fix = {metric.loss_remedy};
  return finding;
}

// Replicas log into one place, so the last one's value remains.
std::optional<Finding> of_one_chunk(const GlobalMetric& metric) {
  const double logged = metric.ranks.front().value;
  if (metric.chunks < 2 || !metric.of_last_batch || metric.is_object || !metric.single_device ||
      !is_beyond_one_device(metric, logged)) {
    return std::nullopt;
  }
  Finding finding = finding_for(
      "LS302", metric.in_training ? Level::note : Level::error, metric,
      fmt::format(
          "`{}` is logged by each replica from its own chunk; only the last one's value remains",
          metric.key));
  finding.why.text =
      fmt::format("dp divides each batch into {} chunks, and a step hook sees one", metric.chunks);
  tell_single_device(metric, logged, finding);
  finding.fix = {
      "let the step return what the value is computed from (`let: {output: ..}`), and log it in "
      "its `_end` hook"};
  return finding;
}

// One value of what all ranks have gathered, so that no mean has changed it.
bool is_computed_once(const GlobalMetric& metric) {
  return metric.is_of_gathered && !differ(metric) &&
         std::ranges::all_of(metric.ranks,
                             [](const RankMetric& rank) { return rank.batches == 1; });
}

// All ranks agree on it, so it is what was given to the objects that is not that of all samples.
std::optional<Finding> of_other_samples(const GlobalMetric& metric) {
  const double logged = metric.ranks.front().value;
  const bool is_judged = metric.is_object || is_computed_once(metric);
  if (!is_judged || metric.is_told_already || metric.in_training || !is_wrong(metric, logged)) {
    return std::nullopt;
  }
  Finding finding =
      finding_for("LS302", Level::error, metric,
                  fmt::format("`{}` is {} on all ranks, which is not the value of all samples",
                              metric.key, value_text(logged)));
  tell_single_device(metric, logged, finding);
  if (metric.is_object) {
    finding.fix = {metric.remedy.empty()
                       ? "update the object on every rank, once with each of its batches"
                       : metric.remedy};
  } else {
    finding.fix = {"gather what every rank has of this epoch, all of it and nothing else"};
  }
  return finding;
}

std::optional<Finding> averaged(const GlobalMetric& metric) {
  const double logged = metric.ranks.front().value;
  const std::string& rule = metric.rule.empty() ? metric.other_rule : metric.rule;
  const bool is_guess = metric.rule.empty();
  if (metric.is_object || rule.empty() || (is_guess && metric.is_told_already) ||
      is_computed_once(metric) || !is_wrong(metric, logged)) {
    return std::nullopt;
  }
  Finding finding = finding_for(
      "LS301", metric.in_training ? Level::note : Level::error, metric,
      fmt::format("`{}` = {} is the {} of per-batch values, which is not the value of all "
                  "samples ({})",
                  metric.key, value_text(logged), metric.reduction,
                  value_text(*metric.single_device)));
  finding.why.text = rule;
  finding.follows.push_back("values of each rank's own batches: " +
                            listed(metric, &RankMetric::own));
  finding.follows.push_back(fmt::format("error: {}", error_text(logged, *metric.single_device)));
  finding.fix = {metric.rule.empty() ? metric.other_remedy : metric.remedy};
  return finding;
}

// The logged value once the lost fraction is fixed.
GlobalMetric with_whole_weight(GlobalMetric metric) {
  const double factor = weight_of(metric).factor();
  for (RankMetric& rank : metric.ranks) {
    rank.value /= factor;
  }
  return metric;
}

// The first that applies; but a mean that lost its fraction may be one that should not be formed.
std::vector<Finding> findings_of(const GlobalMetric& metric) {
  if (auto missing = of_missing_loss(metric)) {
    return {std::move(*missing)};
  }
  if (metric.of_last_batch) {
    auto found = of_one_chunk(metric);
    if (!found && (metric.is_monitored || !metric.in_training)) {
      found = of_one_rank(metric);
    }
    return found ? std::vector{std::move(*found)} : std::vector<Finding>();
  }
  if (auto lost = lost_fraction(metric)) {
    std::vector<Finding> both{std::move(*lost)};
    if (auto mean = averaged(with_whole_weight(metric))) {
      both.push_back(std::move(*mean));
    }
    return both;
  }
  if (auto alone = of_one_rank(metric)) {
    return {std::move(*alone)};
  }
  if (auto other = of_other_samples(metric)) {
    return {std::move(*other)};
  }
  auto mean = averaged(metric);
  return mean ? std::vector{std::move(*mean)} : std::vector<Finding>();
}

}  // namespace

bool is_explained_by_samples(const GlobalMetric& metric) {
  return metric.single_device &&
         std::ranges::any_of(
             metric.ranks,
             [&](const RankMetric& rank) { return is_beyond_one_device(metric, rank.value); }) &&
         std::ranges::none_of(metric.ranks,
                              [&](const RankMetric& rank) { return is_wrong(metric, rank.value); });
}

std::optional<bool> agrees_with_one_device(const GlobalMetric& metric) {
  if (!metric.single_device) {
    return std::nullopt;
  }
  return std::ranges::none_of(metric.ranks, [&](const RankMetric& rank) {
    return is_beyond_one_device(metric, rank.value);
  });
}

std::vector<Finding> metric_is_global(std::span<const GlobalMetric> metrics) {
  std::vector<Finding> findings;
  for (const GlobalMetric& metric : metrics) {
    if (!metric.ranks.empty()) {
      std::ranges::move(findings_of(metric), std::back_inserter(findings));
    }
  }
  return findings;
}

}  // namespace lockstep
