// What the ranks logged in the last epoch, beside what one device logs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/render/render_finding.hpp"
#include "properties/logged/value_text.hpp"
#include "rehearsal/findings/logged_metrics.hpp"
#include "rehearsal/findings/logger_keys.hpp"
#include "rehearsal/rehearsal.hpp"
#include "rehearsal/text/rates_text.hpp"

namespace lockstep::cli {

namespace {

constexpr size_t ranks_listed_max = 4;
/// In place of a placeholder.
constexpr const char* not_computed = "not computed";

std::string values_of(const GlobalMetric& metric) {
  const auto differs = [&](const RankMetric& rank) {
    return rank.value != metric.ranks.front().value &&
           !(std::isnan(rank.value) && std::isnan(metric.ranks.front().value));
  };
  const double first = metric.ranks.front().value;
  const std::string value = metric.is_stand_in ? not_computed : value_text(first);
  if (metric.ranks.size() == 1) {
    return fmt::format("{} on rank {}", value, metric.ranks.front().rank);
  }
  if (std::none_of(metric.ranks.begin(), metric.ranks.end(), differs)) {
    return fmt::format("{} on all ranks", value);
  }
  if (metric.is_stand_in) {
    return fmt::format("{}, not the same on all ranks", not_computed);
  }
  std::string text;
  for (size_t i = 0; i < std::min(metric.ranks.size(), ranks_listed_max); ++i) {
    text += fmt::format("{}{} on rank {}", i == 0 ? "" : ", ", value_text(metric.ranks[i].value),
                        metric.ranks[i].rank);
  }
  return text + (metric.ranks.size() > ranks_listed_max ? ", .." : "");
}

// The error of the value that rank 0's logger writes; empty if it agrees.
std::string agreement(const GlobalMetric& metric) {
  const std::optional<bool> agrees = agrees_with_one_device(metric);
  if (!agrees || *agrees) {
    return "";
  }
  const double error = metric.ranks.front().value - *metric.single_device;
  return fmt::format(" (error {:+.3g})", error);
}

// Collects one text per rank: "A on all ranks", "A on rank 0, B on ranks 1-3".
class Beliefs {
 public:
  void add(size_t rank, const std::string& text) {
    auto known = std::find_if(texts_.begin(), texts_.end(),
                              [&](const auto& one) { return one.first == text; });
    if (known == texts_.end()) {
      texts_.push_back({text, {}});
      known = texts_.end() - 1;
    }
    known->second.add(static_cast<int32_t>(rank));
  }
  std::string text() const {
    if (texts_.size() == 1) {
      return texts_.front().first + " on all ranks";
    }
    std::string out;
    for (size_t i = 0; i < std::min(texts_.size(), ranks_listed_max); ++i) {
      out +=
          fmt::format("{}{} on {}", i == 0 ? "" : ", ", texts_[i].first, texts_[i].second.phrase());
    }
    return out + (texts_.size() > ranks_listed_max ? ", .." : "");
  }

 private:
  std::vector<std::pair<std::string, RankSet>> texts_;
};

std::string best_text(const CheckpointLog& checkpoint) {
  if (checkpoint.best.empty()) {
    return "nothing saved";
  }
  return checkpoint.best_score
             ? fmt::format("{} ({})", checkpoint.best, value_text(*checkpoint.best_score))
             : checkpoint.best;
}

}  // namespace

// Renders the scenario's checkpoints, and rates that schedulers change.
std::string render_decided(const Rehearsal& rehearsal) {
  const ByRank<RankLog>& ranks = rehearsal.run.preparation.log->ranks;
  if (ranks.empty()) {
    return "";
  }
  std::string out;
  for (size_t index = 0; index < ranks.front().checkpoints.size(); ++index) {
    const CheckpointLog& first = ranks.front().checkpoints[index];
    if (first.added_by_trainer) {
      continue;
    }
    Beliefs beliefs;
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      if (ranks[rank].runs_trainer) {
        beliefs.add(rank, best_text(ranks[rank].checkpoints[index]));
      }
    }
    out += fmt::format("best checkpoint{}: {}\n",
                       first.monitor.empty() ? "" : " by " + first.monitor, beliefs.text());
  }
  if (!ranks.front().learning_rates.empty()) {
    Beliefs beliefs;
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      if (ranks[rank].runs_trainer) {
        beliefs.add(rank, rates_text(ranks[rank]));
      }
    }
    out += fmt::format("learning rate{} at the end: {}\n",
                       ranks.front().learning_rates.size() > 1 ? "s" : "", beliefs.text());
  }
  return out;
}

namespace {

std::string values_text(const std::map<std::string, double>& values,
                        const std::vector<GlobalMetric>& logged) {
  constexpr size_t most_keys = 8;
  std::vector<std::string> parts;
  for (const auto& [key, value] : values) {
    if (parts.size() == most_keys) {
      parts.emplace_back("..");
      break;
    }
    parts.push_back(
        fmt::format("{} {}", key, is_of_stand_in(logged, key) ? not_computed : value_text(value)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// Only rank 0: the loggers of other ranks write nothing, and their progress bars are hidden.
std::string render_shown(const RankLog& log, const std::vector<GlobalMetric>& logged) {
  std::string out;
  if (!log.logger.rows.empty()) {
    const LoggerRow& last = log.logger.rows.back();
    out += fmt::format("loggers of rank 0: {} row{}, the last at step {}: {}\n",
                       log.logger.row_count, log.logger.row_count == 1 ? "" : "s", last.step,
                       values_text(last.values, logged));
  }
  if (!log.progress_bar.empty()) {
    out += fmt::format("progress bar of rank 0: {}\n", values_text(log.progress_bar, logged));
  }
  return out;
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
  std::string out = "logged in the last epoch:\n";
  for (const GlobalMetric& metric : rehearsal.logged) {
    out += fmt::format("  {:<{}}  {}", metric.key, width, values_of(metric));
    if (metric.single_device) {
      out +=
          fmt::format("; one device: {}{}", value_text(*metric.single_device), agreement(metric));
    }
    if (metric.of_last_batch) {
      out += " (of the last batch)";
    }
    out += metric.is_stand_in ? "\n" : fmt::format(" ({})\n", metric.averaging);
  }
  if (std::ranges::any_of(rehearsal.logged, &GlobalMetric::is_stand_in)) {
    out +=
        "  not computed: losses have no values for this model, so decisions by them may differ "
        "from "
        "those of a real run\n";
  }
  return out + render_shown(rehearsal.run.preparation.log->ranks.front(), rehearsal.logged);
}

}  // namespace lockstep::cli
