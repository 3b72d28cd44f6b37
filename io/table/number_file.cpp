#include "io/table/number_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

namespace lockstep {
namespace {

constexpr std::string_view blanks = " \t\r,";
constexpr size_t longest_quote = 40;

Diagnostic fault(const std::string& name, int line, size_t column, size_t length,
                 std::string message, std::string remedy) {
  return {{name, line, static_cast<int>(column) + 1},
          static_cast<int>(std::max<size_t>(length, 1)),
          std::move(message),
          std::move(remedy)};
}

/// A finite number, all of the text.
bool parse(std::string_view text, double& number) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(number);
}

}  // namespace

std::variant<NumberFile, Diagnostic> read_numbers(const std::string& text,
                                                  const std::string& name) {
  NumberFile file;
  std::vector<double> numbers;
  int line_number = 0;
  for (size_t begin = 0; begin < text.size();) {
    ++line_number;
    const size_t newline = std::min(text.find('\n', begin), text.size());
    std::string_view line = std::string_view(text).substr(begin, newline - begin);
    begin = newline + 1;
    line = line.substr(0, line.find('#'));
    int64_t columns = 0;
    size_t at = line.find_first_not_of(blanks);
    while (at != std::string_view::npos) {
      const size_t end = std::min(line.find_first_of(blanks, at), line.size());
      const std::string_view cell = line.substr(at, end - at);
      double number = 0;
      if (!parse(cell, number)) {
        return fault(name, line_number, at, cell.size(),
                     fmt::format("`{}` is not a finite number", cell.substr(0, longest_quote)),
                     "write numbers separated by commas or blanks, as numpy.savetxt does");
      }
      numbers.push_back(number);
      ++columns;
      at = line.find_first_not_of(blanks, end);
    }
    if (columns == 0) {
      continue;
    }
    if (file.rows > 0 && columns != file.columns) {
      return fault(
          name, line_number, 0, line.size(),
          fmt::format("this line has {} numbers, the lines before have {}", columns, file.columns),
          "write the same number of numbers in every line");
    }
    file.columns = columns;
    ++file.rows;
  }
  if (file.rows == 0) {
    return fault(name, 0, 0, 1, "the file holds no numbers", "write a line for each row");
  }
  file.numbers = std::make_shared<const std::vector<double>>(std::move(numbers));
  return file;
}

}  // namespace lockstep
