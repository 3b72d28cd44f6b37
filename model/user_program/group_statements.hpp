#pragma once

#include <vector>

#include "model/user_program/statement_parts.hpp"

namespace lockstep {

/// Statements that make groups of ranks, and the groups that others name.
class GroupStatements {
 public:
  explicit GroupStatements(const StatementParts& parts);

  Program new_group(const Statement& statement, Frame& frame);
  /// The group on which a statement communicates, by default the world.
  Group of(const Statement& statement, Frame& frame);

 private:
  Task<std::vector<int64_t>> members_of(const Statement& statement, Frame& frame);
  std::vector<int32_t> members_of_color(const Statement& statement, Frame& frame, int64_t color);

  Rank& rank_;
  const ProgramSettings& settings_;
  RankLog& log_;
  StreamOrder& streams_;
  ModuleNames& names_;
  ExpressionValues& expressions_;
};

}  // namespace lockstep
