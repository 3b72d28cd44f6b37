#include "io/table/collective_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <optional>
#include <string_view>

#include "io/file/regular_file.hpp"

namespace lockstep {

namespace {

constexpr int64_t collective_file_bytes_max = int64_t{16} << 20;
constexpr double longest_us = 1e12;

/// A piece of a line and where it begins, from 0.
struct Cell {
  std::string_view text;
  size_t begin = 0;
};

std::vector<Cell> cells_by(std::string_view line, bool is_csv) {
  const std::string_view separators = is_csv ? "," : " \t";
  std::vector<Cell> cells;
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find_first_of(separators, begin), line.size());
    std::string_view text = line.substr(begin, end - begin);
    size_t at = begin;
    while (!text.empty() && text.front() == ' ') {
      text.remove_prefix(1);
      ++at;
    }
    while (!text.empty() && text.back() == ' ') {
      text.remove_suffix(1);
    }
    if (is_csv || !text.empty()) {
      cells.push_back({text, at});
    }
    begin = end + 1;
  }
  return cells;
}

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_all = error == std::errc() && end == text.data() + text.size() && !text.empty();
  return is_all ? std::optional(number) : std::nullopt;
}

/// Reads line after line until one is wrong.
class CollectiveTableReader {
 public:
  CollectiveTableReader(const std::string& path, CollectiveTable& table)
      : path_(path), table_(table) {}

  void read(std::istream& stream) {
    std::string line;
    while (table_.diagnostics.empty() && std::getline(stream, line)) {
      ++line_;
      if (!line.empty() && line.back() == '\r') {
        line.pop_back();
      }
      const size_t first = line.find_first_not_of(" \t");
      if (first != std::string::npos && line[first] != '#') {
        read_line(line);
      }
    }
    if (table_.diagnostics.empty() && table_.rows.empty()) {
      fail({}, 0, 1, "the file has no measured sizes",
           "give the output of nccl-tests, or CSV with the columns size_bytes,time_us");
    }
  }

 private:
  void fail(std::string_view line, size_t column, size_t length, std::string message,
            std::string remedy) {
    Diagnostic diagnostic;
    diagnostic.place = {path_, line.empty() ? 0 : line_, static_cast<int>(column) + 1};
    diagnostic.length = static_cast<int>(std::max<size_t>(1, length));
    diagnostic.message = std::move(message);
    diagnostic.remedy = std::move(remedy);
    table_.diagnostics.push_back(std::move(diagnostic));
    table_.lines[path_] =
        std::string(static_cast<size_t>(std::max(0, line_ - 1)), '\n') + std::string(line);
  }

  void read_line(const std::string& line) {
    if (!is_known_) {
      is_known_ = true;
      is_csv_ = line.find(',') != std::string::npos;
      if (is_csv_) {
        read_header(line);
        return;
      }
    }
    const std::vector<Cell> cells = cells_by(line, is_csv_);
    const size_t last = std::max(size_column_, time_column_);
    if (cells.size() <= last) {
      fail(line, 0, line.size(),
           fmt::format("a row needs at least {} columns and has {}", last + 1, cells.size()),
           is_csv_ ? "give each column a value" : "give the rows as nccl-tests prints them");
      return;
    }
    add_row(line, cells[size_column_], cells[time_column_]);
  }

  void read_header(const std::string& line) {
    const std::vector<Cell> cells = cells_by(line, true);
    const auto column = [&cells](std::initializer_list<std::string_view> names) {
      for (size_t place = 0; place < cells.size(); ++place) {
        if (std::ranges::find(names, cells[place].text) != names.end()) {
          return std::optional(place);
        }
      }
      return std::optional<size_t>();
    };
    const auto size = column({"size_bytes"});
    const auto time = column({"time_us", "time_us_oop"});
    if (!size || !time) {
      fail(line, 0, line.size(), fmt::format("no column `{}`", size ? "time_us" : "size_bytes"),
           "name the columns in the first line: size_bytes,time_us");
      return;
    }
    size_column_ = *size;
    time_column_ = *time;
  }

  void add_row(const std::string& line, const Cell& size, const Cell& time) {
    const std::optional<int64_t> bytes = number_in<int64_t>(size.text);
    const std::optional<double> time_us = number_in<double>(time.text);
    if (!bytes || *bytes < 0) {
      fail(line, size.begin, size.text.size(),
           fmt::format("`{}` is not a size in bytes", size.text), "write a whole number");
    } else if (*bytes == 0) {
      return;
    } else if (!time_us || !std::isfinite(*time_us) || *time_us <= 0 || *time_us > longest_us) {
      fail(line, time.begin, time.text.size(),
           fmt::format("`{}` is not a time in us above 0", time.text), "correct the number");
    } else if (!table_.rows.empty() && *bytes <= table_.rows.back().bytes) {
      fail(line, size.begin, size.text.size(),
           fmt::format("{} B after {} B: sizes must rise", *bytes, table_.rows.back().bytes),
           "give one run of nccl-tests, smallest size first");
    } else {
      table_.rows.push_back({*bytes, *time_us, line_});
    }
  }

  const std::string& path_;
  CollectiveTable& table_;
  int line_ = 0;
  bool is_known_ = false;
  bool is_csv_ = false;
  // As nccl-tests prints them: size, count, type, redop, root, time.
  size_t size_column_ = 0;
  size_t time_column_ = 5;
};

void fail_whole(CollectiveTable& table, const std::string& path, std::string message) {
  Diagnostic diagnostic;
  diagnostic.place = {path, 0, 0};
  diagnostic.message = std::move(message);
  table.diagnostics.push_back(std::move(diagnostic));
}

}  // namespace

CollectiveTable read_collective_table(const std::string& path) {
  CollectiveTable table;
  if (const std::string why = why_not_regular(path); !why.empty()) {
    fail_whole(table, path, why);
    return table;
  }
  std::ifstream stream(path, std::ios::binary | std::ios::ate);
  if (!stream) {
    fail_whole(table, path, "the file cannot be read");
    return table;
  }
  if (stream.tellg() > collective_file_bytes_max) {
    fail_whole(table, path, "the file is larger than 16 MiB");
    return table;
  }
  stream.seekg(0);
  CollectiveTableReader(path, table).read(stream);
  return table;
}

}  // namespace lockstep
