#include "cli/render/sweep/sweep_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "cli/render/answer_lines.hpp"
#include "cli/render/sweep/sweep_view.hpp"
#include "properties/finding.hpp"
#include "rehearsal/measure/cost.hpp"
#include "rehearsal/text/number_text.hpp"

namespace lockstep::cli {

namespace {

/// One line of the table.
struct TableRow {
  std::vector<std::string> begin;    ///< number and varied values
  std::vector<std::string> figures;  ///< empty: `verdict` is in their place
  std::string verdict;
  std::string codes;
  std::string command;
  std::optional<double> speed;
  std::optional<int64_t> peak;
};

const std::vector<std::string>& figure_titles() {
  static const std::vector<std::string> titles = {"step time",      "samples/s",    "exposed comm",
                                                  "memory per GPU", "host memory",  "total time",
                                                  "cost",           "cost, million"};
  return titles;
}
constexpr size_t figures_without_cost = 6;

std::string quantity_cell(const SweepRow& row, std::string_view name) {
  const Value value = value_in(row, name);
  if (!value.is(Value::Kind::quantity)) {
    return "-";
  }
  const AnyQuantity quantity = value.quantity();
  return quantity.kind == QuantityKind::time ? time_text(quantity.count)
                                             : bytes_text(quantity.count);
}

std::string money_cell(const SweepRow& row, std::string_view name) {
  const Value amount = value_in(row, name);
  const Value currency = value_in(row, "cost.currency");
  return amount.is_number() && currency.is(Value::Kind::text)
             ? money_text(amount.number(), currency.text())
             : "-";
}

std::vector<std::string> figure_cells(const SweepRow& row) {
  const Value speed = value_in(row, "throughput");
  const Value share = value_in(row, exposed_share);
  const Value host = value_in(row, "memory.host");
  const bool holds_on_host = host.is(Value::Kind::quantity) && host.quantity().count > 0;
  return {quantity_cell(row, "step_time"),
          speed.is_number() ? number_text(speed.number()) : "-",
          share.is_number() ? percent_text(share.number()) : "-",
          quantity_cell(row, "memory.peak"),
          holds_on_host ? quantity_cell(row, "memory.host") : "-",
          quantity_cell(row, "total_time"),
          money_cell(row, "cost.total"),
          money_cell(row, "cost.per_million_samples")};
}

std::string phrase_of(const std::string& verdict) {
  const std::map<std::string, std::string> phrases = {{"out_of_memory", "does not fit"},
                                                      {"unsupported", "not modelled"},
                                                      {"internal_error", "internal error"}};
  const auto found = phrases.find(verdict);
  return found == phrases.end() ? verdict : found->second;
}

TableRow table_row(const SweepRow& row, const std::vector<std::string>& keys) {
  TableRow shown;
  shown.begin.push_back(std::to_string(row.number));
  for (const std::string& key : keys) {
    const auto found =
        std::ranges::find(row.values, key, &std::pair<std::string, std::string>::first);
    shown.begin.push_back(found == row.values.end() ? "" : found->second);
  }
  shown.command = row.command;
  const std::string codes = fmt::format("{}", fmt::join(row.codes, ", "));
  if (!is_predicted(row.verdict)) {
    shown.verdict = phrase_of(row.verdict) + (codes.empty() ? "" : ", " + codes) +
                    (row.message.empty() ? "" : ": " + row.message);
    return shown;
  }
  shown.figures = figure_cells(row);
  shown.codes = codes;
  const Value speed = value_in(row, "throughput");
  const Value peak = value_in(row, "memory.peak");
  shown.speed = speed.is_number() ? std::optional(speed.number()) : std::nullopt;
  shown.peak = peak.is(Value::Kind::quantity) ? std::optional(peak.quantity().count) : std::nullopt;
  return shown;
}

// Of one prediction nothing is the best.
void mark_best(std::vector<TableRow>& rows) {
  std::optional<double> fastest;
  std::optional<int64_t> smallest;
  int64_t predicted = 0;
  for (const TableRow& row : rows) {
    predicted += row.figures.empty() ? 0 : 1;
    fastest = row.speed && (!fastest || *row.speed > *fastest) ? row.speed : fastest;
    smallest = row.peak && (!smallest || *row.peak < *smallest) ? row.peak : smallest;
  }
  const auto mark = [](TableRow& row, const char* word) {
    row.codes += (row.codes.empty() ? "" : ", ") + std::string(word);
  };
  for (TableRow& row : rows) {
    if (predicted > 1 && row.speed && row.speed == fastest) {
      mark(row, "fastest");
    }
    if (predicted > 1 && row.peak && row.peak == smallest) {
      mark(row, "smallest");
    }
  }
}

std::vector<size_t> widths_of(const std::vector<std::string>& titles,
                              const std::vector<TableRow>& rows,
                              std::vector<std::string> TableRow::*cells) {
  std::vector<size_t> widths;
  for (size_t column = 0; column < titles.size(); ++column) {
    size_t width = titles[column].size();
    for (const TableRow& row : rows) {
      width = column < (row.*cells).size() ? std::max(width, (row.*cells)[column].size()) : width;
    }
    widths.push_back(width);
  }
  return widths;
}

std::string aligned(const std::vector<std::string>& cells, const std::vector<size_t>& widths,
                    bool to_the_right) {
  std::string text;
  for (size_t column = 0; column < cells.size(); ++column) {
    text += to_the_right ? fmt::format("  {:>{}}", cells[column], widths[column])
                         : fmt::format("  {:<{}}", cells[column], widths[column]);
  }
  return text;
}

// "12 cases: 10 predicted, 2 out_of_memory".
std::string counts_of(const ShownSweep& sweep, const std::map<std::string, int64_t>& verdicts) {
  std::string text = plural(sweep.done, "case");
  if (sweep.done < sweep.header.cases) {
    text += fmt::format(" of {}", sweep.header.cases);
  }
  if (static_cast<int64_t>(sweep.lines.size()) < sweep.done) {
    text += fmt::format(", {} shown (--where)", sweep.lines.size());
  }
  std::string parts;
  for (const auto& [verdict, count] : verdicts) {
    parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", count, verdict);
  }
  return text + (parts.empty() ? "" : ": " + parts) + "\n";
}

// Where no price is known there is nothing to show.
std::vector<std::string> shown_figures(std::vector<TableRow>& rows) {
  std::vector<std::string> shown = figure_titles();
  const bool has_cost = std::ranges::any_of(rows, [](const TableRow& row) {
    return !row.figures.empty() && row.figures[figures_without_cost] != "-";
  });
  if (!has_cost) {
    shown.resize(figures_without_cost);
    for (TableRow& row : rows) {
      row.figures.resize(std::min(row.figures.size(), figures_without_cost));
    }
  }
  return shown;
}

std::string render(std::vector<TableRow>& rows, const std::vector<std::string>& titles,
                   const Style& style) {
  const std::vector<std::string> figures = shown_figures(rows);
  const std::vector<size_t> begin_widths = widths_of(titles, rows, &TableRow::begin);
  const std::vector<size_t> widths = widths_of(figures, rows, &TableRow::figures);
  size_t figures_width = 0;
  for (const size_t width : widths) {
    figures_width += width + 2;
  }
  size_t codes_width = 0;
  for (const TableRow& row : rows) {
    codes_width = std::max(codes_width, row.codes.size());
    const size_t verdict = row.verdict.size() + 2;
    codes_width =
        std::max(codes_width, verdict > figures_width + 2 ? verdict - figures_width - 2 : 0);
  }
  // Behind a long verdict the command simply follows: nothing is cut off.
  codes_width = std::min<size_t>(codes_width, 24);
  const size_t total = figures_width + (codes_width > 0 ? codes_width + 2 : 0);
  std::string text = aligned(titles, begin_widths, false) +
                     fmt::format("{:<{}}", aligned(figures, widths, true), total) +
                     "  run it again\n";
  text = style.strong(text.substr(0, text.size() - 1)) + "\n";
  for (const TableRow& row : rows) {
    const std::string middle =
        row.figures.empty()
            ? "  " + row.verdict
            : aligned(row.figures, widths, true) + (row.codes.empty() ? "" : "  " + row.codes);
    text += aligned(row.begin, begin_widths, false) +
            fmt::format("{:<{}}  {}\n", middle, total, row.command);
  }
  return text;
}

// Batch sizes, micro-batches, or devices that have batches of their own.
bool varies_batches(const std::vector<std::string>& keys) {
  return std::ranges::any_of(keys, [](const std::string& key) {
    return key.ends_with("batch_size") || key.ends_with("accumulate_grad_batches") ||
           key.ends_with("devices") || key.ends_with("num_nodes") || key.ends_with("gpus");
  });
}

}  // namespace

std::string sweep_table(const ShownSweep& sweep, const Style& style) {
  std::vector<std::string> titles = {"case"};
  titles.insert(titles.end(), sweep.header.keys.begin(), sweep.header.keys.end());
  std::vector<TableRow> rows;
  std::map<std::string, int64_t> verdicts;
  for (const std::string* line : sweep.lines) {
    const SweepRow row = shown_row(*line);
    ++verdicts[is_predicted(row.verdict) ? "predicted" : phrase_of(row.verdict)];
    rows.push_back(table_row(row, sweep.header.keys));
  }
  mark_best(rows);
  std::string text = style.strong(sweep.header.scenario);
  for (const std::string& setting : sweep.header.settings) {
    text += " · " + setting;
  }
  text += sweep.header.shards > 1
              ? fmt::format(" · shard {}/{}", sweep.header.shard, sweep.header.shards)
              : "";
  text += "\n" + render(rows, titles, style) + counts_of(sweep, verdicts);
  if (rows.size() > 1 && varies_batches(sweep.header.keys)) {
    text += not_convergence;
  }
  return text;
}

}  // namespace lockstep::cli
