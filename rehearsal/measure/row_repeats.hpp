#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/program/journal.hpp"

namespace lockstep::cli {

/// What a simulation left out on a lane, as one row of it sees that: which of these periods repeat
/// the row, and by how much later.
class RowRepeats {
 public:
  /// Periods that repeat the row, or what was left out within them does.
  struct Entry {
    size_t number = 0;  ///< in the journal's list
    Time first{};       ///< by how much the first comes later
    Time period{};
    int64_t periods = 0;
    bool has_row = false;    ///< it is one of theirs
    size_t first_inner = 0;  ///< entries of this list that repeat it within each period, up to
    size_t end_inner = 0;    ///< this one
    Time longest{};          ///< by how much the row comes later at most in one of the periods
  };

  explicit RowRepeats(std::span<const RepeatedRows> all);

  /// In the order in which they were left out, inner ones also by themselves. Rows are asked for in
  /// ascending order; the answer is valid until the next.
  const std::vector<Entry>& of(int64_t row);

 private:
  void find(int64_t row);

  std::span<const RepeatedRows> all_;
  std::vector<int64_t> borders_;  ///< rows between two of them are repeated alike
  size_t next_border_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace lockstep::cli
