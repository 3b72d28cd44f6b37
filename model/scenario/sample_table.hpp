#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// Values of samples by column, a row per sample, wherever they are kept. May be read by several
/// threads.
class SampleTable {
 public:
  struct Column {
    std::string name;
    bool whole = false;  ///< holds whole numbers only: int64, else fp32
  };

  virtual ~SampleTable() = default;
  virtual const std::vector<Column>& columns() const = 0;
  virtual int64_t rows() const = 0;
  /// The numbers of one column in these rows, in their order. Throws OperationError when what was
  /// kept aside cannot be read again.
  virtual void read(size_t column, std::span<const int64_t> rows, std::span<double> out) const = 0;
};

/// Columns `score_0 score_1 ..` of a table or a map, numbered through from 0, are also one column
/// `score` with one entry for each, unless there is one of that name.
struct ColumnGroup {
  std::string name;
  std::vector<size_t> columns;
};
std::vector<ColumnGroup> column_groups(const std::vector<std::string>& names);
/// Returns the names of columns and of groups of columns.
std::vector<std::string> column_names(const SampleTable& table);

}  // namespace lockstep
