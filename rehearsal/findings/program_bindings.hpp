#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "rehearsal/findings/logged_origin.hpp"

namespace lockstep::cli {

/// What the names of a program are bound to by its statements, whichever hook they stand in.
class ProgramBindings {
 public:
  /// `program` outlives this.
  explicit ProgramBindings(const ProgramSpec& program);

  /// One of these names stands in the expression, or in what its names are bound to.
  bool is_made_of(const Expression& expression, const std::set<std::string>& names) const;
  /// It is made of what ranks have gathered sample by sample, and not of values of batches.
  bool is_of_gathered(const Expression& expression, const LoggedOrigins& origins) const;

 private:
  bool any_name(const ExpressionNode& node, const std::set<std::string>& wanted,
                std::set<std::string>& seen) const;
  bool gathers_samples(const ExpressionNode& node, const LoggedOrigins& origins,
                       std::set<std::string>& seen, bool& found) const;

  std::map<std::string, std::vector<const Expression*>, std::less<>> bound_;
  std::set<std::string, std::less<>> gathered_;
};

}  // namespace lockstep::cli
