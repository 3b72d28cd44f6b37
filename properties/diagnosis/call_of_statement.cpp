#include "properties/diagnosis/call_of_statement.hpp"

#include <algorithm>

namespace lockstep {

namespace {

std::optional<StatementGuard> guard_at(const Sites& sites, size_t position,
                                       const DecidedCalls& mine, const DecidedCalls& theirs) {
  const bool known = position < mine.calls.size() && mine.calls[position].ticket.lane == mine.lane;
  return known ? guard_of_statement(sites, mine.calls[position], mine.decisions, theirs.decisions)
               : std::nullopt;
}

}  // namespace

std::optional<StatementGuard> guard_of_statement(const Sites& sites, const Call& call,
                                                 const Decisions& mine, const Decisions& theirs) {
  const Site* const own = sites.find(call.site);
  if (own != nullptr && own->line > 0) {
    return std::nullopt;
  }
  for (const Decision* statement : mine.statements_at(call.row)) {
    if (auto guard = guard_that_differs(sites, statement->site, mine, call.row, theirs)) {
      return StatementGuard{*guard, statement->site};
    }
  }
  return std::nullopt;
}

bool runs_other_way(const Sites& sites, const StatementGuard& guard, const Decisions& theirs) {
  const Site* const own = sites.find(guard.statement);
  const Decision* const turn = theirs.at(guard.decision.site, guard.decision.turn);
  const Decision* const next = theirs.at(guard.decision.site, guard.decision.turn + 1);
  return own != nullptr && turn != nullptr &&
         std::ranges::any_of(theirs.statements(), [&](const Decision& statement) {
           const Site* const site = sites.find(statement.site);
           return statement.row > turn->row && (next == nullptr || statement.row < next->row) &&
                  site != nullptr && site->description == own->description &&
                  stands_in(sites, statement.site, guard.decision.site);
         });
}

std::optional<CallOfStatement> call_of_statement(const Sites& sites, const DecidedCalls& left,
                                                 const DecidedCalls& right, size_t position) {
  for (size_t k = 0; k <= position; ++k) {
    const auto of_left = guard_at(sites, k, left, right);
    const auto of_right = guard_at(sites, k, right, left);
    if (of_left.has_value() != of_right.has_value()) {
      const StatementGuard& guard = of_left ? *of_left : *of_right;
      const Decisions& others = of_left ? right.decisions : left.decisions;
      if (runs_other_way(sites, guard, others)) {
        return std::nullopt;
      }
      return CallOfStatement{{k, of_left.has_value(), guard.decision},
                             guard.statement,
                             !others.came_to(guard.statement)};
    }
  }
  return std::nullopt;
}

}  // namespace lockstep
