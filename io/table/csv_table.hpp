#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/scenario/reader/diagnostic.hpp"
#include "model/scenario/sample_table.hpp"

namespace lockstep {

/// A CSV file of numbers, or what is wrong with it, with file, line and column.
struct CsvTable {
  std::shared_ptr<const SampleTable> table;  ///< null if there are diagnostics
  std::vector<Diagnostic> diagnostics;       ///< the first ten
  Sources lines;                             ///< the faulty lines, for `render`
  uint64_t digest = 0;                       ///< of every byte, where there are no diagnostics
};

/// Reads the file once, a piece at a time. The first line names the columns; every other line holds
/// one finite number for each, that fits in fp32, or is whole and below 2^53. Up to 2^17 numbers
/// are kept in memory; more go to a temporary file.
CsvTable read_csv(const std::string& path);

}  // namespace lockstep
