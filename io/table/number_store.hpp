#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/journal/temporary_store.hpp"

namespace lockstep {

/// Rows of numbers, written once and then read anywhere. What does not fit in memory goes to a
/// temporary file in blocks of rows.
class NumberStore {
 public:
  static constexpr size_t numbers_in_memory = size_t{1} << 17;

  void set_width(size_t columns);
  /// False: there is no room for it.
  bool append(std::span<const double> row);
  /// No more rows come. False: there is no room.
  bool finish();
  int64_t rows() const { return rows_; }
  /// The numbers of one column in these rows. Throws StoreError.
  void read(size_t column, std::span<const int64_t> rows, std::span<double> out) const;

 private:
  bool save_block();
  void read_some(size_t column, std::span<const int64_t> rows, std::span<double> out,
                 std::vector<double>& numbers) const;
  void read_window(int64_t first, int64_t count, std::vector<double>& numbers) const;

  size_t width_ = 1;
  int64_t rows_ = 0;
  int64_t rows_saved_ = 0;
  std::vector<double> held_;  ///< all rows, or those of the last block
  std::unique_ptr<TemporaryStore> store_;
  mutable std::mutex reading_;
};

}  // namespace lockstep
