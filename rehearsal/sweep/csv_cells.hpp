#pragma once

#include <string>
#include <vector>

namespace lockstep::cli {

/// The cells of one line of a CSV file, as RFC 4180 writes them.
struct CsvLine {
  int number = 0;  ///< from 1, where it begins
  std::vector<std::string> cells;
};

/// Lines without any cell that holds something are left out. Quotes may span lines. `fault`:
/// what is wrong, with the line; empty: nothing.
std::vector<CsvLine> csv_cells(const std::string& text, std::string& fault);

/// A cell that `csv_cells` reads again.
std::string csv_cell(const std::string& text);

}  // namespace lockstep::cli
