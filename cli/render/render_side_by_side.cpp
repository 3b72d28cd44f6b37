#include "cli/render/render_side_by_side.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "properties/finding.hpp"

namespace lockstep::cli {

namespace {

struct Row {
  std::string name;
  std::string step_time;
  std::string throughput;
  std::string exposed;
  std::string memory;
  std::string host_memory;
  bool fits = true;
};

std::string name_of_case(const Rehearsal& rehearsal) {
  const std::string& name = rehearsal.scenario->name;
  return name.empty() ? rehearsal.run.preparation.strategy : name;
}

const RankResults* fullest(const Rehearsal& rehearsal) {
  const std::vector<RankResults>& ranks = rehearsal.results.ranks;
  const auto found =
      std::ranges::max_element(ranks, {}, [](const RankResults& rank) { return rank.memory.peak; });
  return found == ranks.end() ? nullptr : &*found;
}

bool trains(const Rehearsal& rehearsal) {
  return rehearsal.ran() && !rehearsal.scenario->is_bare_program() && fullest(rehearsal) != nullptr;
}

Row row_of(const Rehearsal& rehearsal) {
  const Prediction& prediction = rehearsal.results.prediction;
  const RankResults& rank = *fullest(rehearsal);
  Row row;
  row.name = name_of_case(rehearsal);
  row.fits = !ran_out_of_memory(rehearsal.run);
  const bool is_predicted = rehearsal.why_no_prediction().empty() && prediction.step_time;
  row.step_time = is_predicted ? time_text(prediction.step_time->count()) : "-";
  row.throughput = is_predicted && prediction.samples_per_s
                       ? fmt::format("{:.4g}", *prediction.samples_per_s)
                       : "-";
  row.exposed = is_predicted ? time_text(prediction.breakdown.exposed_communication.count()) : "-";
  row.memory = row.fits
                   ? bytes_text(rank.memory.peak.count())
                   : fmt::format("does not fit in {}", bytes_text(rank.memory.capacity.count()));
  row.host_memory =
      rank.host_peak > Bytes{} ? bytes_text(rank.host_peak.count()) : std::string("-");
  return row;
}

}  // namespace

std::string render_side_by_side(const std::vector<const Rehearsal*>& cases, const Style& style) {
  std::vector<Row> rows;
  for (const Rehearsal* each : cases) {
    if (trains(*each)) {
      rows.push_back(row_of(*each));
    }
  }
  if (rows.size() < 2) {
    return "";
  }
  size_t name_width = 4;
  size_t memory_width = 14;
  for (const Row& row : rows) {
    name_width = std::max(name_width, row.name.size());
    memory_width = std::max(memory_width, row.memory.size());
  }
  std::string text = style.strong("Side by side") + "\n";
  const auto line = [&](const std::string& name, const std::string& step,
                        const std::string& throughput, const std::string& exposed,
                        const std::string& memory, const std::string& host) {
    return fmt::format("  {:<{}}  {:>10}  {:>11}  {:>12}  {:>{}}  {:>13}\n", name, name_width, step,
                       throughput, exposed, memory, memory_width, host);
  };
  text += line("case", "step time", "samples/s", "exposed comm", "memory per GPU", "host per rank");
  for (const Row& row : rows) {
    text += line(row.name, row.step_time, row.throughput, row.exposed, row.memory, row.host_memory);
  }
  return text;
}

}  // namespace lockstep::cli
