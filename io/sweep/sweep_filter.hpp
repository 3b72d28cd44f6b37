#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "io/sweep/sweep_row.hpp"
#include "model/expression/expression.hpp"

namespace lockstep {

/// Why a condition or a name cannot be used.
struct SweepFilterError {
  std::string message;
  std::string remedy;
};

/// A condition over the values of a row, in the language of expectations: results by their names,
/// keys of the sweep, `case` and `verdict`.
class SweepFilter {
 public:
  /// `keys`: those of the sweep, each with one of its values.
  static std::variant<SweepFilter, SweepFilterError> parse(
      const std::string& text, const std::vector<std::pair<std::string, std::string>>& keys);

  /// False also where the row lacks a value that decides.
  bool keeps(const SweepRow& row) const;

 private:
  explicit SweepFilter(Expression expression) : expression_(std::move(expression)) {}
  Expression expression_;
};

/// Whether a row may have a value of this name; else what is wrong.
std::string remedy_for_sweep_name(const std::string& name, const std::vector<std::string>& keys);

}  // namespace lockstep
