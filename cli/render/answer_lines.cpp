#include "cli/render/answer_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>

#include "model/trainer/framework/lightning_versions.hpp"
#include "model/trainer/framework/torch_release.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"
#include "properties/finding.hpp"
#include "properties/rank_set.hpp"
#include "rehearsal/measure/cost.hpp"
#include "rehearsal/measure/peak_moment.hpp"
#include "rehearsal/run/node_memory.hpp"
#include "rehearsal/text/number_text.hpp"

namespace lockstep::cli {

std::string line(std::string_view key, const std::string& value, const std::string& beside) {
  return beside.empty() ? fmt::format("  {:<12}  {}\n", key, value)
                        : fmt::format("  {:<12}  {:<22}  {}\n", key, value, beside);
}

std::string memory_line(const Rehearsal& rehearsal) {
  std::map<int64_t, RankSet> by_peak;
  const ByRank<RankResults>& ranks = rehearsal.results.ranks;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    by_peak[ranks[rank].memory.peak.count()].add(static_cast<int32_t>(rank));
  }
  if (by_peak.empty() || by_peak.rbegin()->first == 0) {
    return "";
  }
  const auto& [peak, on] = *by_peak.rbegin();
  const Bytes capacity = ranks[static_cast<size_t>(on.first())].memory.capacity;
  const std::string limit = capacity == Bytes::max() ? "" : " of " + bytes_text(capacity.count());
  const std::string where = by_peak.size() == 1 ? "every rank" : on.phrase();
  return line("memory", fmt::format("{}{} on {}", bytes_text(peak), limit, where),
              by_peak.size() == 1
                  ? ""
                  : fmt::format("(least: {} on {})", bytes_text(by_peak.begin()->first),
                                by_peak.begin()->second.phrase()));
}

namespace {

// Where it is more than steps usually differ by.
std::string time_beside_steps(const Prediction& prediction) {
  const std::optional<Time>& usual = prediction.usual_step_time();
  if (!usual || prediction.steps < 2) {
    return "";
  }
  const Time of_steps = *prediction.first_step + *usual * (prediction.steps - 1);
  const Time beside = prediction.total_time - of_steps;
  constexpr int64_t parts = 20;
  return beside * parts < prediction.total_time
             ? ""
             : line("",
                    fmt::format("{} more than so many steps take: checkpoints, evaluation, ends "
                                "of epochs, slower steps",
                                time_text(beside.count())));
}

}  // namespace

std::string steps_lines(const Prediction& prediction) {
  std::string out = line(plural(prediction.steps, "step"), time_text(prediction.total_time.count()),
                         "first step " + time_text(prediction.first_step->count()));
  out += time_beside_steps(prediction);
  if (prediction.simulated_steps < prediction.steps) {
    out += line("", fmt::format("{} of them simulated: the others repeat these",
                                prediction.simulated_steps));
  }
  if (prediction.micro_batches) {
    out +=
        line("", fmt::format("{} of the {} micro-batches of a step simulated: the others repeat "
                             "these",
                             prediction.micro_batches->simulated, prediction.micro_batches->all));
  }
  return out;
}

std::string checkpoint_line(const Rehearsal& rehearsal) {
  std::map<int64_t, RankSet> by_bytes;
  int64_t all = 0;
  const ByRank<RankResults>& ranks = rehearsal.results.ranks;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto number = static_cast<int32_t>(rank);
    const std::optional<WrittenBytes>& written = ranks[rank].checkpoint_bytes;
    const int64_t bytes = written ? written->of(number).count() : 0;
    all += bytes;
    if (bytes > 0) {
      by_bytes[bytes].add(number);
    }
  }
  if (by_bytes.empty()) {
    return "";
  }
  const auto& [most, writers] = *by_bytes.rbegin();
  return line("checkpoint", bytes_text(all),
              most == all
                  ? fmt::format("written by {}", writers.phrase())
                  : fmt::format("written in parts, {} by {}", bytes_text(most), writers.phrase()));
}

bool offloads(const Rehearsal& rehearsal) {
  const std::vector<NodeMemory> nodes = node_memory_of(rehearsal.run);
  const NodeMemory* most = fullest(nodes);
  return most != nullptr && !rehearsal.run.preparation.placement.cpu && most->holds_offloaded();
}

namespace {

// "(74.4 GiB on rank 0 while the state_dict is gathered after step 3)"
std::string on_host_of(const Rehearsal& rehearsal) {
  const ByRank<RankResults>& ranks = rehearsal.results.ranks;
  const std::span<const RankResults> distinct = ranks.distinct();
  const auto most = std::ranges::max_element(distinct, {}, &RankResults::host_peak);
  if (most == distinct.end() || !most->host_peak_at) {
    return "";
  }
  RankSet on;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].host_peak == most->host_peak) {
      on.add(static_cast<int32_t>(rank));
    }
  }
  return fmt::format("({} on {}, {})", bytes_text(most->host_peak.count()),
                     on.size() == static_cast<int64_t>(ranks.size()) ? "each rank" : on.phrase(),
                     text_of(*most->host_peak_at));
}

}  // namespace

// Batches alone are not worth a line.
std::string host_line(const Rehearsal& rehearsal) {
  if (!offloads(rehearsal)) {
    return "";
  }
  const std::vector<NodeMemory> nodes = node_memory_of(rehearsal.run);
  const NodeMemory* most = fullest(nodes);
  const std::string limit =
      most->capacity == Bytes::max() ? "" : " of " + bytes_text(most->capacity.count());
  return line("host", fmt::format("{}{} per node", bytes_text(most->needed.count()), limit),
              on_host_of(rehearsal));
}

// Rates are the machine's: they say why a step takes as long as it does.
std::string drive_line(const Rehearsal& rehearsal) {
  const std::vector<NodeMemory> nodes = node_memory_of(rehearsal.run, drive_device);
  const NodeMemory* most = fullest(nodes);
  if (most == nullptr || most->needed == Bytes{}) {
    return "";
  }
  const std::string limit = most->capacity == Bytes::max()
                                ? ", of unknown size"
                                : " of " + bytes_text(most->capacity.count());
  const NodeModel& node = rehearsal.run.machine.cluster.node;
  const auto rate = [&node](BytesPerSecond own) {
    constexpr double giga = 1e9;
    return static_cast<double>((own > BytesPerSecond{} ? own : node.disk).count()) / giga;
  };
  return line("drive", fmt::format("{}{} per node", bytes_text(most->needed.count()), limit),
              fmt::format("(NVMe: reads {:g} GB/s, writes {:g} GB/s)", rate(node.nvme.read),
                          rate(node.nvme.write)));
}

std::string cost_lines(const Rehearsal& rehearsal) {
  const std::optional<Cost> cost = cost_of(rehearsal);
  if (!cost) {
    return "";
  }
  std::string of = money_text(cost->total, cost->currency);
  if (cost->with_failures) {
    of += fmt::format(" ({} with failures)", money_text(*cost->with_failures, cost->currency));
  }
  std::string rates;
  if (cost->per_million_samples) {
    rates = money_text(*cost->per_million_samples, cost->currency) + " per million samples";
  }
  if (cost->per_billion_tokens) {
    rates += " · " + money_text(*cost->per_billion_tokens, cost->currency) + " per billion tokens";
  }
  return line("cost", of, rates) + line("", price_text(*cost));
}

std::string range_text(const std::optional<Time>& low, const std::optional<Time>& high) {
  return low && high ? fmt::format(" ({} to {})", time_text(low->count()), time_text(high->count()))
                     : "";
}

std::string versions_text(const Rehearsal& rehearsal) {
  const Version& lightning = rehearsal.run.preparation.lightning;
  std::string text = fmt::format("lightning {}.{}", lightning.major, lightning.minor);
  const Version torch = torch_release_of(lightning);
  if (!version_asked(*rehearsal.scenario, "torch") && torch != torch_release_of(never)) {
    text += fmt::format(" · torch {}.{} (assumed)", torch.major, torch.minor);
  }
  return text;
}

std::string cycle_line(const Prediction& prediction) {
  if (prediction.steps_of_cycle <= 1) {
    return "";
  }
  const std::string cycle = fmt::format("{}, as not every step exchanges the same",
                                        plural(prediction.steps_of_cycle, "step"));
  return line("", prediction.mean_step_time
                      ? fmt::format("{} on average over {}",
                                    time_text(prediction.mean_step_time->count()), cycle)
                      : fmt::format("an average would need {}; this run has {}: rates and prices "
                                    "are those of the step above",
                                    cycle, prediction.steps));
}

}  // namespace lockstep::cli
