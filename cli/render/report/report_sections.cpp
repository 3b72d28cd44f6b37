// The parts of the page of a run.
#include "cli/render/report/report_sections.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/render/render.hpp"
#include "cli/render/report/drawings.hpp"
#include "cli/render/report/layer_times.hpp"
#include "properties/finding.hpp"
#include "rehearsal/measure/cost.hpp"
#include "rehearsal/measure/peak_moment.hpp"
#include "rehearsal/text/number_text.hpp"

namespace lockstep::cli {

namespace {

using Lines = std::vector<std::vector<std::string>>;

std::string card(std::string_view name, const std::string& value, const std::string& beside = "") {
  return fmt::format(
      "<div class=\"card\"><div class=\"name\">{}</div><div class=\"value\">{}</div><div "
      "class=\"beside\">{}</div></div>\n",
      markup_text(name), markup_text(value), markup_text(beside));
}

std::string heading(std::string_view text, std::string_view beside = "") {
  return beside.empty() ? fmt::format("<h2>{}</h2>\n", markup_text(text))
                        : fmt::format("<h2>{} <span class=\"beside\">{}</span></h2>\n",
                                      markup_text(text), markup_text(beside));
}

/// A row of the breakdown: its colour, its name and its time.
struct BreakdownPart {
  std::string_view colour;
  std::string_view name;
  Time time{};
};

std::vector<BreakdownPart> parts_of(const Breakdown& parts) {
  std::vector<BreakdownPart> all = {
      {"forward", "compute", parts.compute},
      {"optimizer", "optimizer", parts.optimizer},
      {"communication", "exposed communication", parts.exposed_communication},
      {"data", "waiting for data", parts.data},
      {"host", "host", parts.host},
      {"copies", "copies (PCIe)", parts.offload},
      {"other", "drive (NVMe)", parts.drive},
      {"idle", "idle", parts.idle}};
  std::erase_if(all, [](const BreakdownPart& part) { return part.time == Time{}; });
  return all;
}

}  // namespace

std::string answers_section(const Rehearsal& rehearsal) {
  const Prediction& prediction = rehearsal.results.prediction;
  std::string cards;
  if (prediction.step_time) {
    cards += card("step time", time_text(prediction.step_time->count()),
                  prediction.mfu ? fmt::format("MFU {:.2f}", *prediction.mfu) : "");
  }
  if (prediction.samples_per_s) {
    cards +=
        card("throughput", number_text(*prediction.samples_per_s) + " samples/s",
             prediction.tokens_per_s ? number_text(*prediction.tokens_per_s) + " tokens/s" : "");
  }
  const ByRank<RankResults>& ranks = rehearsal.results.ranks;
  const auto fullest =
      std::ranges::max_element(ranks, {}, [](const RankResults& rank) { return rank.memory.peak; });
  if (!ranks.empty() && (*fullest).memory.peak > Bytes{}) {
    const Bytes capacity = (*fullest).memory.capacity;
    cards += card("memory per GPU", bytes_text((*fullest).memory.peak.count()),
                  capacity == Bytes::max() ? "" : "of " + bytes_text(capacity.count()));
  }
  cards += card("whole run", time_text(prediction.total_time.count()),
                plural(prediction.steps, "optimizer step"));
  if (const std::optional<Cost> cost = cost_of(rehearsal)) {
    cards += card("cost", money_text(cost->total, cost->currency), price_text(*cost));
  }
  return "<div class=\"cards\">\n" + cards + "</div>\n";
}

std::string breakdown_section(const Rehearsal& rehearsal) {
  const Breakdown& parts = rehearsal.results.prediction.breakdown;
  const Time whole = parts.whole();
  if (whole <= Time{}) {
    return "";
  }
  constexpr double width = 1120;
  Drawing bar{width, 26, "Parts of a step", ""};
  double x = 0;
  Lines lines;
  for (const BreakdownPart& part : parts_of(parts)) {
    const double share = seconds(part.time) / seconds(whole);
    bar.parts += svg_box(x, 2, width * share, 22, part.colour,
                         fmt::format("{}: {}", part.name, percent_text(share)));
    x += width * share;
    lines.push_back({std::string(part.name), time_text(part.time.count()), percent_text(share)});
  }
  if (parts.communication > Time{}) {
    lines.push_back({"communication, overlapped or not", time_text(parts.communication.count()),
                     percent_text(seconds(parts.communication) / seconds(whole))});
  }
  return heading("Where a step goes", "rank 0") + bar.inline_svg() +
         html_table({"part", "time", "share"}, lines);
}

std::string memory_section(const Rehearsal& rehearsal) {
  const ByRank<RankResults>& ranks = rehearsal.results.ranks;
  if (ranks.empty() || ranks.front().memory.peak == Bytes{}) {
    return "";
  }
  Lines lines;
  for (int purpose = 0; purpose < purpose_count; ++purpose) {
    const Bytes bytes = ranks.front().memory.peak_by_purpose[static_cast<size_t>(purpose)];
    if (bytes > Bytes{}) {
      std::string name(name_of(static_cast<Purpose>(purpose)));
      std::ranges::replace(name, '_', ' ');
      lines.push_back({name, bytes_text(bytes.count())});
    }
  }
  lines.push_back({"CUDA context and NCCL, estimated, beside the peak",
                   bytes_text(ranks.front().reserve.count())});
  const std::optional<PeakMoment>& at = ranks.front().peak_at;
  return heading("Memory", "rank 0, at its peak" + (at ? ": " + text_of(*at) : "")) +
         html_table({"purpose", "size"}, lines);
}

std::string utilization_section(const Rehearsal& rehearsal) {
  const std::optional<Utilization> found = utilization_of(rehearsal, 0, 200);
  if (!found) {
    return "";
  }
  const DeviceType device = rehearsal.run.preparation.placement.device;
  std::string text =
      heading(fmt::format("{} utilization over time", word_for(device)),
              fmt::format("rank 0, samples of {}; a kernel ran {} of the time{}",
                          time_text(found->period.count()), percent_text(found->kernel_ran),
                          device == DeviceType::cuda ? ", as nvidia-smi counts" : "")) +
      utilization_drawing(*found, rehearsal.run.result.total_time).inline_svg();
  constexpr size_t dips_max = 12;
  Lines lines;
  for (size_t at = 0; at < std::min(found->dips.size(), dips_max); ++at) {
    const UtilizationDip& dip = found->dips[at];
    lines.push_back({dip.label(), time_text(dip.begin.count()), time_text(dip.end.count()),
                     percent_text(dip.working)});
  }
  return text + (lines.empty() ? "" : html_table({"dip", "from", "until", "working"}, lines));
}

std::string layers_section(const Rehearsal& rehearsal) {
  constexpr size_t layers_max = 400;
  std::vector<LayerTime> layers = layer_times(rehearsal.run, drawn_span(rehearsal.run));
  if (layers.empty()) {
    return "";
  }
  Lines lines;
  for (size_t at = 0; at < std::min(layers.size(), layers_max); ++at) {
    const LayerTime& layer = layers[at];
    lines.push_back({layer.name, layer.kind, count_text(layer.parameters),
                     time_text(layer.forward.count()), time_text(layer.backward.count()),
                     bytes_text(layer.kept.count())});
  }
  const std::string left_out = layers.size() > layers_max
                                   ? fmt::format(", the first {} of {}", layers_max, layers.size())
                                   : "";
  return "<details><summary>" + heading("Layers", "rank 0, in a step" + left_out) + "</summary>\n" +
         html_table({"layer", "kind", "parameters", "forward", "backward", "kept per sample"},
                    lines) +
         "</details>\n";
}

std::string transfers_section(const Rehearsal& rehearsal) {
  const ByRank<RankResults>& ranks = rehearsal.results.ranks;
  if (ranks.empty() || ranks.front().transfers.empty()) {
    return "";
  }
  Lines lines;
  for (const TransferCount& transfer : ranks.front().transfers) {
    lines.push_back({std::string(name_of(transfer.kind)), transfer.group,
                     std::to_string(transfer.count), bytes_text(transfer.bytes)});
  }
  return heading("Transfers of a step", "rank 0") +
         html_table({"call", "group", "times", "size"}, lines);
}

std::string suggestions_section(const Rehearsal& rehearsal) {
  const Advice& advice = rehearsal.results.advice;
  if (advice.changes.empty() || !advice.base) {
    return "";
  }
  Lines lines;
  const auto add = [&lines](const Advice::Change& change) {
    lines.push_back({change.text, number_text(change.samples_per_s),
                     time_text(change.step_time.count()), bytes_text(change.peak.count())});
  };
  add(*advice.base);
  std::ranges::for_each(advice.changes, add);
  return heading("Suggestions", plural(advice.steps, "step") + " of each were simulated") +
         html_table({"change", "samples/s", "step time", "memory"}, lines);
}

std::string findings_section(const Rehearsal& rehearsal) {
  std::string items;
  for (const Finding& finding : rehearsal.findings) {
    items += fmt::format(
        "<li class=\"{}\"><b>{} {}</b> {}<br><span class=\"beside\">{}</span></li>\n",
        name_of(finding.level), name_of(finding.level), markup_text(finding.code),
        markup_text(finding.title), markup_text(fmt::format("{}", fmt::join(finding.fix, " "))));
  }
  for (const Problem& problem : rehearsal.problems) {
    if (problem.kind == Problem::Kind::note) {
      items += fmt::format("<li><b>note</b> {}<br><span class=\"beside\">{}</span></li>\n",
                           markup_text(problem.message), markup_text(problem.remedy));
    }
  }
  for (const Judged& judged : rehearsal.expectations) {
    const char* verdict = !judged.judged ? "not judged" : judged.met ? "met" : "failed";
    items += fmt::format("<li><b>expectation {}</b> <code>{}</code> {}</li>\n", verdict,
                         markup_text(judged.text), markup_text(judged.actual));
  }
  return items.empty() ? "" : heading("Findings") + "<ul>\n" + items + "</ul>\n";
}

}  // namespace lockstep::cli
