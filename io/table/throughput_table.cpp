#include "io/table/throughput_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "io/file/regular_file.hpp"
#include "io/scenario/names/spelling.hpp"

namespace lockstep {

namespace {

constexpr int64_t throughput_file_bytes_max = int64_t{16} << 20;

constexpr auto text_columns = std::to_array<std::string_view>(
    {"row_id", "system", "gpu", "interconnect", "framework", "strategy", "model", "precision",
     "activation_checkpointing", "other_metric", "other_value", "value_origin", "source_ref",
     "notes"});
constexpr auto whole_columns = std::to_array<std::string_view>(
    {"gpus", "nodes", "dp", "tp", "pp", "cp", "ep", "layers", "hidden", "heads", "kv_heads", "ffn",
     "micro_batch", "grad_accum", "global_batch"});
constexpr auto number_columns = std::to_array<std::string_view>(
    {"samples_per_s", "step_s", "tokens_per_s", "tokens_per_s_per_gpu", "tflops_per_gpu",
     "peak_memory_GB", "mfu_pct", "hfu_pct"});
/// Numbers, but sources also describe them in words ("~250k", "max").
constexpr auto loose_columns =
    std::to_array<std::string_view>({"params", "seq_len", "vocab", "vpp"});

template <class Columns>
bool is_in(const Columns& columns, std::string_view name) {
  return std::ranges::find(columns, name) != columns.end();
}

std::vector<std::string_view> all_columns() {
  std::vector<std::string_view> all;
  const auto add = [&all](const auto& columns) {
    all.insert(all.end(), columns.begin(), columns.end());
  };
  add(text_columns);
  add(whole_columns);
  add(number_columns);
  add(loose_columns);
  return all;
}

std::optional<double> double_in(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_all = error == std::errc() && end == text.data() + text.size() && !text.empty();
  return is_all && std::isfinite(number) ? std::optional(number) : std::nullopt;
}

/// A cell without its quotes, and where it begins in the line, from 0.
struct QuotedCell {
  std::string text{};
  size_t begin = 0;
};

/// Nothing where a quote is not closed.
std::optional<std::vector<QuotedCell>> quoted_cells(const std::string& line) {
  std::vector<QuotedCell> cells;
  size_t at = 0;
  while (true) {
    QuotedCell cell{.begin = at};
    if (at < line.size() && line[at] == '"') {
      for (++at;; ++at) {
        if (at >= line.size()) {
          return std::nullopt;
        }
        if (line[at] != '"') {
          cell.text += line[at];
        } else if (at + 1 < line.size() && line[at + 1] == '"') {
          cell.text += line[at++];
        } else {
          ++at;
          break;
        }
      }
    }
    const size_t end = std::min(line.find(',', at), line.size());
    cell.text += line.substr(at, end - at);
    cells.push_back(std::move(cell));
    if (end == line.size()) {
      return cells;
    }
    at = end + 1;
  }
}

/// Reads line after line until one is wrong.
class ThroughputReader {
 public:
  ThroughputReader(const std::string& path, ThroughputTable& table) : path_(path), table_(table) {}

  void read(std::istream& stream) {
    std::string line;
    while (table_.diagnostics.empty() && std::getline(stream, line)) {
      ++line_;
      if (!line.empty() && line.back() == '\r') {
        line.pop_back();
      }
      if (!line.empty() && line.front() != '#') {
        read_line(line);
      }
    }
    if (table_.diagnostics.empty() && table_.rows.empty()) {
      line_ = 0;
      fail("", 0, 1, "the file has no measured rows",
           "name the columns in the first line, and write a row for each measurement");
    }
  }

 private:
  void fail(const std::string& line, size_t column, size_t length, std::string message,
            std::string remedy) {
    Diagnostic diagnostic;
    diagnostic.place = {path_, line_, static_cast<int>(column) + 1};
    diagnostic.length = static_cast<int>(std::max<size_t>(1, length));
    diagnostic.message = std::move(message);
    diagnostic.remedy = std::move(remedy);
    table_.diagnostics.push_back(std::move(diagnostic));
    table_.lines[path_] = std::string(static_cast<size_t>(std::max(0, line_ - 1)), '\n') + line;
  }

  void read_line(const std::string& line) {
    const auto cells = quoted_cells(line);
    if (!cells) {
      fail(line, 0, line.size(), "a quoted cell does not end on its line", "close the quote");
    } else if (columns_.empty()) {
      read_header(line, *cells);
    } else if (cells->size() != columns_.size()) {
      fail(line, 0, line.size(),
           fmt::format("a row needs {} cells and has {}", columns_.size(), cells->size()),
           "give each column a cell, which may be empty; quote text that contains a comma");
    } else {
      read_row(line, *cells);
    }
  }

  void read_header(const std::string& line, const std::vector<QuotedCell>& cells) {
    const std::vector<std::string_view> known = all_columns();
    for (const QuotedCell& cell : cells) {
      if (std::ranges::find(known, cell.text) == known.end()) {
        const std::string nearest = nearest_spelling(cell.text, known);
        fail(line, cell.begin, cell.text.size(), fmt::format("unknown column `{}`", cell.text),
             nearest.empty() ? "docs/accuracy.md lists the columns"
                             : fmt::format("did you mean `{}`?", nearest));
        return;
      }
      if (std::ranges::find(columns_, cell.text) != columns_.end()) {
        fail(line, cell.begin, cell.text.size(), fmt::format("column `{}` twice", cell.text),
             "name each column once");
        return;
      }
      columns_.push_back(cell.text);
    }
    for (const std::string_view needed : {"row_id", "gpu"}) {
      if (std::ranges::find(columns_, needed) == columns_.end()) {
        fail(line, 0, line.size(), fmt::format("no column `{}`", needed),
             "every row needs row_id and gpu");
        return;
      }
    }
  }

  void read_row(const std::string& line, const std::vector<QuotedCell>& cells) {
    ThroughputRow row;
    row.source = std::filesystem::path(path_).stem().string();
    row.line = line_;
    for (size_t place = 0; place < cells.size(); ++place) {
      const QuotedCell& cell = cells[place];
      if (!is_right(columns_[place], cell.text)) {
        fail(line, cell.begin, cell.text.size(),
             fmt::format("`{}` is not a {} for {}", cell.text,
                         is_in(whole_columns, columns_[place]) ? "whole number above 0"
                                                               : "number of at least 0",
                         columns_[place]),
             "correct the cell, or leave it empty");
        return;
      }
      row.set(columns_[place], cell.text);
    }
    if (row.id().empty() || !ids_.insert(row.id()).second) {
      fail(line, 0, line.size(),
           row.id().empty() ? "a row has no row_id" : fmt::format("row_id `{}` twice", row.id()),
           "give each row an identifier of its own");
      return;
    }
    table_.rows.push_back(std::move(row));
  }

  static bool is_right(const std::string& column, const std::string& text) {
    const bool is_whole = is_in(whole_columns, column);
    if (text.empty() || !(is_whole || is_in(number_columns, column))) {
      return true;
    }
    constexpr double most = 1e15;
    const std::optional<double> number = double_in(text);
    if (!number || *number < 0 || *number > most) {
      return false;
    }
    return !is_whole || (*number > 0 && std::floor(*number) == *number);
  }

  const std::string& path_;
  ThroughputTable& table_;
  int line_ = 0;
  std::vector<std::string> columns_;
  std::set<std::string> ids_;
};

void refuse_file(ThroughputTable& table, const std::string& path, std::string message) {
  Diagnostic diagnostic;
  diagnostic.place = {path, 0, 0};
  diagnostic.message = std::move(message);
  table.diagnostics.push_back(std::move(diagnostic));
}

}  // namespace

const std::string& ThroughputRow::text(std::string_view column) const {
  static const std::string none;
  const auto found = cells_.find(column);
  return found == cells_.end() ? none : found->second;
}

std::optional<double> ThroughputRow::number(std::string_view column) const {
  return double_in(text(column));
}

std::optional<int64_t> ThroughputRow::whole(std::string_view column) const {
  const std::optional<double> value = number(column);
  return value && std::floor(*value) == *value ? std::optional(static_cast<int64_t>(*value))
                                               : std::nullopt;
}

ThroughputTable read_throughput_table(const std::string& path) {
  ThroughputTable table;
  if (const std::string why = why_not_regular(path); !why.empty()) {
    refuse_file(table, path, why);
    return table;
  }
  std::ifstream stream(path, std::ios::binary | std::ios::ate);
  if (!stream) {
    refuse_file(table, path, "the file cannot be read");
    return table;
  }
  if (stream.tellg() > throughput_file_bytes_max) {
    refuse_file(table, path, "the file is larger than 16 MiB");
    return table;
  }
  stream.seekg(0);
  ThroughputReader(path, table).read(stream);
  return table;
}

}  // namespace lockstep
