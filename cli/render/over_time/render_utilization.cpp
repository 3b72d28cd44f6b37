// Utilization over time as text and as JSON.
#include <fmt/format.h>

#include <algorithm>

#include "cli/render/over_time/utilization.hpp"
#include "properties/finding.hpp"
#include "rehearsal/text/number_text.hpp"

namespace lockstep::cli {

namespace {

constexpr int64_t samples_shown = 60;
constexpr int64_t samples_of_json = 100;
constexpr size_t dips_shown = 6;

std::string blocks_of(const Utilization& utilization) {
  constexpr std::string_view blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::string text;
  for (const UtilizationSample& sample : utilization.samples) {
    const auto height = static_cast<size_t>(sample.working * 7.999);
    text += blocks[std::min<size_t>(height, 7)];
  }
  return text;
}

double lost(const UtilizationDip& dip, double usual) {
  return (usual - dip.working) * seconds(dip.end - dip.begin);
}

std::vector<UtilizationDip> costliest(const Utilization& utilization, size_t most) {
  std::vector<UtilizationDip> dips = utilization.dips;
  std::ranges::stable_sort(dips, [&](const UtilizationDip& left, const UtilizationDip& right) {
    return lost(left, utilization.usual) > lost(right, utilization.usual);
  });
  dips.resize(std::min(dips.size(), most));
  std::ranges::stable_sort(dips, {}, &UtilizationDip::begin);
  return dips;
}

Json dip_json(const UtilizationDip& dip) {
  return {{"from_s", seconds(dip.begin)},
          {"until_s", seconds(dip.end)},
          {"working", dip.working},
          {"cause", key_of(dip.cause)},
          {"stage", dip.evaluates ? "validation" : "training"}};
}

}  // namespace

std::string render_utilization(const Rehearsal& rehearsal) {
  const std::optional<Utilization> found = utilization_of(rehearsal, 0, samples_shown);
  if (!found) {
    return "";
  }
  const DeviceType device = rehearsal.run.preparation.placement.device;
  std::string text = fmt::format(
      "\n{} utilization over time (rank 0, {} of {})\n  a kernel ran {} of the time{}; {} without "
      "those that wait for other ranks\n  {}\n",
      word_for(device), plural(std::ssize(found->samples), "sample"),
      time_text(found->period.count()), percent_text(found->kernel_ran),
      device == DeviceType::cuda ? ", as nvidia-smi counts" : "", percent_text(found->working),
      blocks_of(*found));
  for (const UtilizationDip& dip : costliest(*found, dips_shown)) {
    text += fmt::format("  {:>9} - {:<9}  {:>5}  {}\n", time_text(dip.begin.count()),
                        time_text(dip.end.count()), percent_text(dip.working), dip.label());
  }
  if (found->dips.size() > dips_shown) {
    text += fmt::format(
        "  .. and {}\n",
        plural(std::ssize(found->dips) - std::ssize(costliest(*found, dips_shown)), "shorter dip"));
  }
  return text;
}

Json utilization_json(const Rehearsal& rehearsal) {
  const std::optional<Utilization> found = utilization_of(rehearsal, 0, samples_of_json);
  if (!found) {
    return nullptr;
  }
  Json json;
  json["rank"] = found->rank;
  json["period_s"] = seconds(found->period);
  json["gpu_utilization"] = found->kernel_ran;
  json["working"] = found->working;
  json["working_in_steady_step"] = found->usual;
  json["samples"] = Json::array();
  for (const UtilizationSample& sample : found->samples) {
    Json one{{"until_s", seconds(sample.until)},
             {"gpu_utilization", sample.kernel_ran},
             {"working", sample.working},
             {"evaluating", sample.evaluating}};
    Json rest = Json::object();
    for (size_t kind = 1; kind < moment_count; ++kind) {
      if (sample.share[kind] > 0) {
        rest[std::string(key_of(static_cast<Moment>(kind)))] = sample.share[kind];
      }
    }
    one["otherwise"] = std::move(rest);
    json["samples"].push_back(std::move(one));
  }
  json["dips"] = Json::array();
  for (const UtilizationDip& dip : found->dips) {
    json["dips"].push_back(dip_json(dip));
  }
  return json;
}

}  // namespace lockstep::cli
