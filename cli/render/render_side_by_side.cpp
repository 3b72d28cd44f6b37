#include "cli/render/render_side_by_side.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "properties/finding.hpp"
#include "rehearsal/outcome.hpp"
#include "rehearsal/run/node_memory.hpp"
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

const RankResults* fullest_rank(const Rehearsal& rehearsal) {
  const std::vector<RankResults>& ranks = rehearsal.results.ranks;
  const auto found =
      std::ranges::max_element(ranks, {}, [](const RankResults& rank) { return rank.memory.peak; });
  return found == ranks.end() ? nullptr : &*found;
}

std::string strategy_of(const Rehearsal& rehearsal) {
  if (!rehearsal.run.preparation.strategy.empty()) {
    return rehearsal.run.preparation.strategy;
  }
  const std::optional<TrainerSpec>& trainer = rehearsal.scenario->trainer;
  return trainer && trainer->strategy ? trainer->strategy->name : "auto";
}

// "refused, LS501": with the code of the first error, where there is one.
std::string with_code(const std::string& verdict, const Rehearsal& rehearsal) {
  const auto first = std::ranges::find_if(rehearsal.findings, [](const Finding& finding) {
    return finding.level == Level::error && !finding.code.empty();
  });
  return first == rehearsal.findings.end() ? verdict : verdict + ", " + first->code;
}

std::string lack_text(const char* where, Bytes needed, Bytes there) {
  return fmt::format("does not fit: {}{} of {}", where, bytes_text(needed.count()),
                     bytes_text(there.count()));
}

std::string lack_of_memory(const Rehearsal& rehearsal) {
  const bool on_device = std::ranges::any_of(rehearsal.run.result.ends,
                                             [](const RankEnd& end) { return end.out_of_memory; });
  if (!on_device) {
    const std::vector<NodeMemory> nodes = node_memory_of(rehearsal.run);
    const NodeMemory& node = *fullest(nodes);
    if (!node.fits()) {
      return lack_text("host ", node.needed, node.capacity);
    }
    const std::vector<NodeMemory> drives = node_memory_of(rehearsal.run, drive_device);
    const NodeMemory& drive = *fullest(drives);
    return lack_text("NVMe ", drive.needed, drive.capacity);
  }
  const RankResults* rank = fullest_rank(rehearsal);
  const std::optional<Bytes> needed = rehearsal.results.advice.needed;
  if (rank == nullptr || rank->memory.capacity == Bytes::max()) {
    return "does not fit";
  }
  return needed ? lack_text("", *needed, rank->memory.capacity)
                : fmt::format("does not fit in {}", bytes_text(rank->memory.capacity.count()));
}

// Empty: it came to its end, and its figures are a prediction.
std::string verdict_on(const Rehearsal& rehearsal) {
  switch (outcome_of(rehearsal)) {
    case Outcome::predicted: return "";
    case Outcome::refused: return with_code("refused", rehearsal);
    case Outcome::invalid: return "invalid";
    case Outcome::unsupported: return "not modelled";
    case Outcome::undecided: return "undecided";
    case Outcome::out_of_memory: return lack_of_memory(rehearsal);
    case Outcome::hangs: return with_code("hangs", rehearsal);
    case Outcome::raises: return with_code("raises", rehearsal);
  }
  return "";
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
  row.step_time = prediction.step_time ? time_text(prediction.step_time->count()) : "-";
  row.throughput = prediction.samples_per_s ? number_text(row.samples_per_s) : "-";
  row.exposed = fmt::format(
      "{} {:>4}", time_text(parts.exposed_communication.count()),
      percent_text(whole > Time{} ? seconds(parts.exposed_communication) / seconds(whole) : 0));
  row.memory = bytes_text(row.peak.count());
  row.host_memory = rank->host_peak > Bytes{} ? bytes_text(rank->host_peak.count()) : "-";
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
