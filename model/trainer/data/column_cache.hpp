#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/strategy/plan.hpp"
#include "model/trainer/data/sample_columns.hpp"

namespace lockstep {

/// Columns of the batch that a rank works on. Statements ask for a column again and again, and an
/// evaluation for the same batches in every epoch: what was made once is kept, up to a limit.
class ColumnCache {
 public:
  /// So many numbers are kept beyond the batch. `place` is the rank's, and outlives this.
  ColumnCache(int64_t numbers_max, const Place& place) : numbers_max_(numbers_max), place_(place) {}

  /// Another batch begins.
  void begin_batch() { of_batch_.clear(); }
  /// `returns`: the same batch may come again.
  Value values(const SampleColumns& columns, std::string_view column, const Batch& batch,
               bool returns);

 private:
  struct Key {
    const SampleColumns* columns;
    std::string column;
    int64_t first_sample;
    auto operator<=>(const Key&) const = default;
  };
  struct Kept {
    std::vector<int64_t> samples;
    Value value;
  };

  int64_t numbers_max_;
  const Place& place_;
  int64_t numbers_ = 0;
  std::map<std::string, Value, std::less<>> of_batch_;
  std::map<Key, Kept> kept_;  ///< looked up only, never walked
};

}  // namespace lockstep
