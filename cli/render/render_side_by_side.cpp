#include "cli/render/render_side_by_side.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "cli/render/case_verdict.hpp"
#include "rehearsal/text/number_text.hpp"

namespace lockstep::cli {

namespace {

struct Row {
  std::string name;
  std::string strategy;
  std::string verdict;  ///< in place of all that follows; empty: it is a prediction
  std::string step_time{};
  std::string throughput{};
  std::string exposed{};
  std::string memory{};
  std::string host_memory{};
  double samples_per_s = 0;
  Bytes peak{};
  std::string mark{};
};

std::string strategy_of(const Rehearsal& rehearsal) {
  if (!rehearsal.run.preparation.strategy.empty()) {
    return rehearsal.run.preparation.strategy;
  }
  const std::optional<TrainerSpec>& trainer = rehearsal.scenario->trainer;
  return trainer && trainer->strategy ? trainer->strategy->name : "auto";
}

Row row_of(const Rehearsal& rehearsal) {
  Row row{rehearsal.scenario->name, strategy_of(rehearsal), verdict_on(rehearsal)};
  row.name = row.name.empty() ? row.strategy : row.name;
  const RankResults* rank = fullest_rank(rehearsal);
  if (!row.verdict.empty() || rank == nullptr) {
    return row;
  }
  const Prediction& prediction = rehearsal.results.prediction;
  const Breakdown& parts = prediction.breakdown;
  const Time whole = parts.whole();
  row.samples_per_s = prediction.samples_per_s.value_or(0);
  row.peak = rank->memory.peak;
  row.step_time =
      prediction.usual_step_time() ? time_text(prediction.usual_step_time()->count()) : "-";
  row.throughput = prediction.samples_per_s ? number_text(row.samples_per_s) : "-";
  row.exposed = fmt::format(
      "{} {:>4}", time_text(parts.exposed_communication.count()),
      percent_text(whole > Time{} ? seconds(parts.exposed_communication) / seconds(whole) : 0));
  row.memory = bytes_text(row.peak.count());
  const Bytes on_host = most_on_host(rehearsal);
  row.host_memory = on_host > Bytes{} ? bytes_text(on_host.count()) : "-";
  return row;
}

void add_mark(Row& row, const char* mark) {
  row.mark += (row.mark.empty() ? "" : ", ") + std::string(mark);
}

// Of one prediction nothing is the best.
void mark_best(std::vector<Row>& rows) {
  std::vector<Row*> predicted;
  for (Row& row : rows) {
    if (row.verdict.empty()) {
      predicted.push_back(&row);
    }
  }
  if (predicted.size() < 2) {
    return;
  }
  const double fastest =
      (*std::ranges::max_element(predicted, {}, &Row::samples_per_s))->samples_per_s;
  const Bytes smallest = (*std::ranges::min_element(predicted, {}, &Row::peak))->peak;
  for (Row* row : predicted) {
    if (fastest > 0 && row->samples_per_s == fastest) {
      add_mark(*row, "fastest");
    }
    if (row->peak == smallest) {
      add_mark(*row, "smallest");
    }
  }
}

size_t width_of(const std::vector<Row>& rows, std::string Row::*column, size_t least) {
  for (const Row& row : rows) {
    least = std::max(least, (row.*column).size());
  }
  return least;
}

bool strategies_differ(const std::vector<Row>& rows) {
  std::set<std::string> strategies;
  bool tell_more = false;
  for (const Row& row : rows) {
    strategies.insert(row.strategy);
    tell_more = tell_more || row.strategy != row.name;
  }
  return strategies.size() > 1 && tell_more;
}

std::string text_of(const std::vector<Row>& rows) {
  const size_t name_width = width_of(rows, &Row::name, 4);
  const size_t strategy_width = width_of(rows, &Row::strategy, 8);
  const bool tells_strategy = strategies_differ(rows);
  const auto begin = [&](const std::string& name, const std::string& strategy) {
    return fmt::format("  {:<{}}", name, name_width) +
           (tells_strategy ? fmt::format("  {:<{}}", strategy, strategy_width) : "");
  };
  const auto figures = [](const Row& row) {
    return fmt::format("  {:>10}  {:>11}  {:>15}  {:>14}  {:>13}", row.step_time, row.throughput,
                       row.exposed, row.memory, row.host_memory);
  };
  const Row titles{"case",           "strategy",     "", "step time", "samples/s", "exposed comm",
                   "memory per GPU", "host per rank"};
  std::string text = begin(titles.name, titles.strategy) + figures(titles) + "\n";
  for (const Row& row : rows) {
    text += begin(row.name, row.strategy);
    text += row.verdict.empty() ? figures(row) : "  " + row.verdict;
    text += (row.mark.empty() ? "" : "  " + row.mark) + "\n";
  }
  return text;
}

}  // namespace

std::string render_side_by_side(const std::vector<const Rehearsal*>& cases, const Style& style) {
  std::vector<Row> rows;
  bool some_trained = false;
  for (const Rehearsal* each : cases) {
    if (!each->scenario->is_bare_program()) {
      rows.push_back(row_of(*each));
      some_trained = some_trained || (each->ran() && fullest_rank(*each) != nullptr);
    }
  }
  if (rows.size() < 2 || !some_trained) {
    return "";
  }
  mark_best(rows);
  return style.strong("Side by side") + "\n" + text_of(rows);
}

}  // namespace lockstep::cli
