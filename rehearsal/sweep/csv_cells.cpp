#include "rehearsal/sweep/csv_cells.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::cli {

namespace {

class CellReader {
 public:
  CellReader(const std::string& text, std::string& fault) : text_(text), fault_(fault) {}

  std::vector<CsvLine> read() {
    while (at_ < text_.size() && fault_.empty()) {
      read_line();
    }
    return std::move(lines_);
  }

 private:
  void read_line() {
    CsvLine line{number_, {}};
    do {
      line.cells.push_back(text_.substr(at_, 1) == "\"" ? quoted() : plain());
    } while (fault_.empty() && at_ < text_.size() && text_[at_++] == ',');
    ++number_;
    const bool is_empty =
        std::ranges::all_of(line.cells, [](const std::string& cell) { return cell.empty(); });
    if (!is_empty) {
      lines_.push_back(std::move(line));
    }
  }

  // Leaves `at_` at the comma or line feed behind the cell.
  std::string plain() {
    const size_t end = std::min(text_.find_first_of(",\n", at_), text_.size());
    std::string cell = text_.substr(at_, end - at_);
    at_ = end;
    while (!cell.empty() && (cell.back() == '\r' || cell.back() == ' ')) {
      cell.pop_back();
    }
    return cell.substr(std::min(cell.find_first_not_of(' '), cell.size()));
  }

  std::string quoted() {
    std::string cell;
    const int begins = number_;
    for (++at_; at_ < text_.size(); ++at_) {
      const bool is_quote = text_[at_] == '"';
      if (is_quote && text_.substr(at_ + 1, 1) != "\"") {
        ++at_;
        if (const std::string rest = plain(); !rest.empty()) {
          fault_ = fmt::format("line {}: `{}` follows a quoted cell", number_, rest);
        }
        return cell;
      }
      at_ += is_quote ? 1 : 0;
      number_ += text_[at_] == '\n' ? 1 : 0;
      cell += text_[at_];
    }
    fault_ = fmt::format("line {}: a quote is not closed", begins);
    return cell;
  }

  const std::string& text_;
  std::string& fault_;
  std::vector<CsvLine> lines_;
  size_t at_ = 0;
  int number_ = 1;
};

}  // namespace

std::vector<CsvLine> csv_cells(const std::string& text, std::string& fault) {
  return CellReader(text, fault).read();
}

std::string csv_cell(const std::string& text) {
  const bool is_plain = text.find_first_of(",\"\r\n") == std::string::npos &&
                        !text.starts_with(' ') && !text.ends_with(' ');
  if (is_plain) {
    return text;
  }
  std::string quoted = "\"";
  for (const char letter : text) {
    quoted += letter == '"' ? "\"\"" : std::string(1, letter);
  }
  return quoted + "\"";
}

}  // namespace lockstep::cli
