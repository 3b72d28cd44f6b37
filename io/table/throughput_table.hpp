#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/scenario/reader/diagnostic.hpp"

namespace lockstep {

/// One published throughput of a training: the cells of its row by the names of the columns.
class ThroughputRow {
 public:
  std::string source;  ///< the name of its file without ending
  int line = 0;

  void set(const std::string& column, std::string cell) { cells_[column] = std::move(cell); }
  /// Empty where the row or the file has none.
  const std::string& text(std::string_view column) const;
  /// Nothing where the cell is empty, or where the column may hold words and does.
  std::optional<double> number(std::string_view column) const;
  std::optional<int64_t> whole(std::string_view column) const;
  const std::string& id() const { return text("row_id"); }

 private:
  std::map<std::string, std::string, std::less<>> cells_;
};

/// The rows of a file of published throughputs, or what is wrong with it.
struct ThroughputTable {
  std::vector<ThroughputRow> rows;
  std::vector<Diagnostic> diagnostics;  ///< the first; empty: the table is complete
  Sources lines;                        ///< the faulty line, for `render`
};

/// Reads CSV with quoted cells. Lines that begin with `#` are passed over; the first other line
/// names the columns, each of which must be known (docs/accuracy.md); numbers must be numbers.
ThroughputTable read_throughput_table(const std::string& path);

}  // namespace lockstep
