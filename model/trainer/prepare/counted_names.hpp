#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "model/expression/expression.hpp"
#include "model/scenario/program_spec.hpp"

namespace lockstep {

/// Expressions of a program that follow from the counters of its loops (batch_idx, epoch,
/// global_step), from what a rank is called, and from constants.
class CountedNames {
 public:
  using Bound = std::map<std::string, Expression, std::less<>>;

  /// `knows_steps`: global_step follows from the number of the batch.
  CountedNames(const ProgramSpec& program, bool knows_steps);

  bool holds(const Expression& expression) const;
  /// Such an expression that is a number whatever the counters are.
  bool is_number(const Expression& expression) const;
  /// Names that the program binds to such expressions, each at one place.
  const Bound& bound() const { return bound_; }
  /// Whether some of them may have other values on another rank.
  bool differ_by_rank(const std::vector<Expression>& expressions) const;

 private:
  bool is_known(const std::string& name) const;

  std::set<std::string, std::less<>> counters_;
  std::set<std::string, std::less<>> rebound_;  ///< names that the program binds to anything
  Bound bound_;
};

}  // namespace lockstep
