#include "io/table/csv_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "io/file/regular_file.hpp"
#include "io/scenario/load/digest.hpp"
#include "io/scenario/names/known_names.hpp"
#include "io/scenario/reader/scalar.hpp"
#include "io/table/number_store.hpp"
#include "model/expression/evaluation_error.hpp"

namespace lockstep {

namespace {

constexpr size_t line_bytes_max = size_t{1} << 20;
constexpr size_t columns_max = 4096;
constexpr size_t diagnostics_max = 10;
constexpr double whole_max = 9007199254740992.0;  // 2^53
constexpr size_t buffer_bytes = size_t{1} << 18;

class StoredTable final : public SampleTable {
 public:
  const std::vector<Column>& columns() const override { return columns_; }
  int64_t rows() const override { return numbers.rows(); }
  void read(size_t column, std::span<const int64_t> rows, std::span<double> out) const override {
    try {
      numbers.read(column, rows, out);
    } catch (const StoreError& error) {
      throw OperationError("the values of a CSV file cannot be read again",
                           "set TMPDIR to a folder with room");
    }
  }

  std::vector<Column> columns_;
  NumberStore numbers;
};

/// Lines of a file, without their ends; a line that is too long is cut and reported.
class Lines {
 public:
  explicit Lines(std::ifstream& stream) : stream_(stream), buffer_(buffer_bytes, '\0') {}

  bool next(std::string& line) {
    line.clear();
    bool any = false;
    too_long_ = false;
    while (at_ < end_ || fill()) {
      any = true;
      const char* begin = buffer_.data() + at_;
      const size_t stop = std::min(buffer_.find('\n', at_), end_);
      const size_t length = stop - at_;
      if (line.size() + length > line_bytes_max) {
        too_long_ = true;
      } else {
        line.append(begin, length);
      }
      at_ += length;
      if (at_ < end_) {
        ++at_;
        break;
      }
    }
    if (!line.empty() && line.back() == '\r') {
      line.pop_back();
    }
    return any;
  }
  bool too_long() const { return too_long_; }
  uint64_t digest() const { return digest_; }  ///< of what was read so far

 private:
  bool fill() {
    stream_.read(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    at_ = 0;
    end_ = static_cast<size_t>(stream_.gcount());
    digest_ = digest_with(digest_, std::string_view(buffer_.data(), end_));
    return end_ > 0;
  }

  std::ifstream& stream_;
  std::string buffer_;
  size_t at_ = 0;
  size_t end_ = 0;
  uint64_t digest_ = 0;
  bool too_long_ = false;
};

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

class CsvReader {
 public:
  explicit CsvReader(const std::string& path) : path_(path) {}

  CsvTable run() {
    if (const std::string lack = why_not_regular(path_); !lack.empty()) {
      fail(0, 0, 1, lack, "name a CSV file: a line of names, then lines of numbers");
      return std::move(result_);
    }
    std::error_code error;
    if (!std::filesystem::is_regular_file(path_, error)) {
      fail(0, 0, 1, "file of values not found", "paths are relative to the scenario file");
      return std::move(result_);
    }
    std::ifstream stream(path_, std::ios::binary);
    if (!stream) {
      fail(0, 0, 1, "the file of values cannot be opened", "");
      return std::move(result_);
    }
    Lines lines(stream);
    while (result_.diagnostics.size() < diagnostics_max && lines.next(line_)) {
      ++number_;
      if (lines.too_long()) {
        line_.clear();
        fail(1, 1, 1, fmt::format("the line has more than {} bytes", line_bytes_max), "");
      } else if (number_ == 1) {
        read_header();
      } else if (!read_row()) {
        break;
      }
    }
    finish();
    result_.digest = lines.digest();
    return std::move(result_);
  }

 private:
  void fail(int line, size_t column, size_t length, const std::string& message,
            const std::string& remedy) {
    result_.diagnostics.push_back({{path_, line == 0 ? 0 : number_, static_cast<int>(column)},
                                   static_cast<int>(std::max<size_t>(1, length)),
                                   message,
                                   remedy});
    if (line != 0) {  // earlier lines stay empty, so that numbers of lines are right
      std::string& text = result_.lines[path_];
      const auto known = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
      if (known < number_ && number_ < 1'000'000) {
        text += std::string(static_cast<size_t>(number_ - 1 - known), '\n');
        text += line_.substr(0, 4096) + "\n";
      }
    }
  }

  void fail_at(std::string_view part, const std::string& message, const std::string& remedy) {
    fail(1, static_cast<size_t>(part.data() - line_.data()) + 1, part.size(), message, remedy);
  }

  void read_header() {
    if (line_.starts_with("\xef\xbb\xbf")) {
      line_.erase(0, 3);
    }
    std::set<std::string_view> names;
    for_each_cell([&](std::string_view cell) {
      std::string_view name = trimmed(cell);
      if (name.size() >= 2 && name.front() == '"' && name.back() == '"') {
        name = name.substr(1, name.size() - 2);
      }
      if (!is_name(std::string(name)) || name.find('.') != std::string_view::npos) {
        fail_at(cell, fmt::format("`{}` is not a name for a column", name),
                "the first line names the columns: letters, digits and `_`");
      } else if (is_known_name(name)) {
        fail_at(
            cell,
            fmt::format("no column can be named `{}`: the name has a different meaning in programs",
                        name),
            "choose another name");
      } else if (!names.insert(name).second) {
        fail_at(cell, fmt::format("two columns are named `{}`", name), "rename one of them");
      }
      table_->columns_.push_back({std::string(name), true});
    });
    if (table_->columns_.size() > columns_max) {
      fail(1, 1, 1, fmt::format("{} columns are too many", table_->columns_.size()),
           fmt::format("a file has at most {}", columns_max));
    }
    table_->numbers.set_width(table_->columns_.size());
  }

  template <class Visit>
  void for_each_cell(Visit visit) {
    const std::string_view line = line_;
    for (size_t begin = 0;;) {
      const size_t comma = std::min(line.find(',', begin), line.size());
      visit(line.substr(begin, comma - begin));
      if (comma == line.size()) {
        return;
      }
      begin = comma + 1;
    }
  }

  // Empty lines at the end are nobody's business.
  bool read_row() {
    if (trimmed(line_).empty()) {
      first_empty_ = first_empty_ == 0 ? number_ : first_empty_;
      return true;
    }
    if (first_empty_ != 0) {
      fail(0, 1, 1, "the line is empty, but others follow", "remove it, or fill it in");
      result_.diagnostics.back().place.line = std::exchange(first_empty_, 0);
      return true;
    }
    row_.clear();
    size_t cells = 0;
    for_each_cell([&](std::string_view cell) {
      if (cells < table_->columns_.size()) {
        read_cell(cell, table_->columns_[cells]);
      }
      ++cells;
    });
    if (cells != table_->columns_.size()) {
      fail(1, 1, line_.size(),
           fmt::format("the line has {} value{}, but the first line names {} column{}", cells,
                       cells == 1 ? "" : "s", table_->columns_.size(),
                       table_->columns_.size() == 1 ? "" : "s"),
           "give one value for each column");
      return true;
    }
    if (result_.diagnostics.empty() && !table_->numbers.append(row_)) {
      fail(0, 0, 1, "no space to store the values temporarily", "set TMPDIR to a folder with room");
      return false;
    }
    return true;
  }

  void read_cell(std::string_view cell, SampleTable::Column& column) {
    const std::string_view text = trimmed(cell);
    if (text.empty()) {
      return fail_at(cell, fmt::format("the value of `{}` is missing", column.name),
                     "remove the line, or fill it in");
    }
    double value = 0;
    const char* begin = text.data() + (text.front() == '+' ? 1 : 0);
    const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
    if (error == std::errc::result_out_of_range) {
      return fail_at(text, fmt::format("{} does not fit in fp32", text), "scale the column");
    }
    if (error != std::errc() || end != text.data() + text.size()) {
      return fail_at(text, fmt::format("`{}` is not a number", text), "columns hold numbers only");
    }
    if (!std::isfinite(value)) {
      return fail_at(text, fmt::format("`{}` holds {}", column.name, text),
                     "remove the line, or fill it in");
    }
    const bool whole = text.find_first_of(".eE") == std::string_view::npos;
    column.whole = column.whole && whole;
    if (whole ? std::abs(value) > whole_max
              : std::abs(value) > double{std::numeric_limits<float>::max()}) {
      return fail_at(text, fmt::format("{} is out of range", text),
                     "whole numbers go to 2^53, others to 3.4e38");
    }
    row_.push_back(value);
  }

  void finish() {
    if (result_.diagnostics.empty() && number_ == 0) {
      fail(0, 0, 1, "the file of values is empty", "its first line names the columns");
    } else if (result_.diagnostics.empty() && table_->rows() == 0) {
      fail(0, 0, 1, "the file of values has no values", "give one line for each sample");
    } else if (result_.diagnostics.empty() && !table_->numbers.finish()) {
      fail(0, 0, 1, "no space to store the values temporarily", "set TMPDIR to a folder with room");
    }
    if (result_.diagnostics.empty()) {
      result_.table = table_;
    }
  }

  std::string path_;
  std::string line_;
  int number_ = 0;
  int first_empty_ = 0;  ///< line, until another follows; 0: none
  std::vector<double> row_;
  std::shared_ptr<StoredTable> table_ = std::make_shared<StoredTable>();
  CsvTable result_;
};

}  // namespace

CsvTable read_csv(const std::string& path) { return CsvReader(path).run(); }

}  // namespace lockstep
