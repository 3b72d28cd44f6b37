#pragma once

#include <string>
#include <vector>

#include "model/core/random.hpp"
#include "model/scenario/data_spec.hpp"
#include "model/scenario/evaluate.hpp"

namespace lockstep {

/// The values of samples, by column. A sample has the same values on every rank and in every epoch:
/// random() draws from the seed, the column's place and the sample.
class SampleColumns {
 public:
  /// `written`: by the scenario itself, not a default.
  SampleColumns(const std::optional<ColumnValues>& values, uint64_t seed, bool written);

  bool has(std::string_view column) const { return find(column) != nullptr; }
  /// Whether the scenario itself gives this column.
  bool is_given(std::string_view column) const { return written_ && has(column); }
  /// One element a sample: fp32, int64 of whole numbers, uint8 of truth values.
  /// Throws OperationError or EvaluationError.
  Value values(std::string_view column, const std::vector<int64_t>& samples) const;

  struct Entry {
    std::string name;
    std::vector<Expression> items;  ///< one a sample; empty: `expression` with `sample` bound
    Expression expression;
  };
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  const Entry* find(std::string_view column) const;
  Value one(const Entry& entry, int64_t sample) const;

  std::vector<Entry> entries_;
  uint64_t seed_;
  bool written_;
};

}  // namespace lockstep
