#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/core/place.hpp"
#include "model/core/random.hpp"
#include "model/expression/evaluate.hpp"
#include "model/scenario/data_spec.hpp"

namespace lockstep {

/// The values of samples, by column. A sample has the same values on every rank and in every epoch,
/// unless its column names the rank: random() draws from the seed, the column's place and the
/// sample. Columns `score_0 score_1 ..` are also one column `score`, [samples, entries].
class SampleColumns {
 public:
  /// `written`: by the scenario itself, not a default.
  SampleColumns(const std::optional<ColumnValues>& values, uint64_t seed, bool written);

  bool has(std::string_view column) const { return column_names_.contains(column); }
  /// Whether the scenario itself gives the columns, or this one.
  bool are_given() const { return written_; }
  bool is_given(std::string_view column) const { return written_ && has(column); }
  /// One element per sample: fp32, int64 of whole numbers, uint8 of truth values.
  /// Throws OperationError or EvaluationError. `place`: of the rank that asks.
  Value values(std::string_view column, const std::vector<int64_t>& samples,
               const Place& place) const;

  struct Entry {
    std::string name;
    std::vector<Expression> items;  ///< one a sample; empty: `expression` with `sample` bound
    Expression expression;
  };
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  /// One column, or several side by side.
  using Parts = std::vector<size_t>;
  Tensor of_column(size_t column, const std::vector<int64_t>& samples, const Place& place) const;

  std::vector<Entry> entries_;
  std::shared_ptr<const SampleTable> table_;  ///< instead of entries; may be null
  std::map<std::string, Parts, std::less<>> column_names_;
  uint64_t seed_;
  bool written_;
};

}  // namespace lockstep
