#include "rehearsal/findings/guarded_return.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "model/scenario/expressions_of.hpp"
#include "model/user_program/sites.hpp"
#include "properties/diagnosis/decision.hpp"

namespace lockstep::cli {

namespace {

struct ReturnInside {
  const Statement* statement = nullptr;
  std::string also{};  ///< conditions of branches between the statements and it: " and (..)"
};

// The first that these statements come to, also within a branch or a loop of theirs.
std::optional<ReturnInside> return_in(const std::vector<Statement>& statements) {
  for (const Statement& statement : statements) {
    if (statement.kind == StatementKind::return_hook) {
      return ReturnInside{&statement};
    }
    for (const std::vector<Statement>* way : {&statement.body, &statement.otherwise}) {
      if (std::optional<ReturnInside> inside = return_in(*way)) {
        if (statement.kind == StatementKind::branch) {
          inside->also = fmt::format(" and {}({}){}", way == &statement.body ? "" : "not ",
                                     statement.expression->value.text(), inside->also);
        }
        return inside;
      }
    }
  }
  return std::nullopt;
}

// As the trainer does (batch_runner.cpp).
bool refuses_to_skip(const OneRun& run) {
  return run.preparation.lightning >= Version{2, 3, 0} &&
         value_or(run.preparation.scenario->program->automatic_optimization, true);
}

// Nothing is left out by a `return` behind which its hook does nothing: but for training_step, for
// which Lightning then has no backward.
bool leaves_something_out(const ProgramSpec& program, const Statement& branch) {
  const Hook* const hook = program.find(branch.hook);
  return branch.hook == "training_step" || hook == nullptr || &hook->statements.back() != &branch ||
         (!branch.body.empty() && !branch.otherwise.empty());
}

}  // namespace

std::optional<FindingCause> return_in_branch(const OneRun& run, const Statement& branch) {
  if (branch.kind != StatementKind::branch) {
    return std::nullopt;
  }
  for (const std::vector<Statement>* way : {&branch.body, &branch.otherwise}) {
    if (const std::optional<ReturnInside> inside = return_in(*way)) {
      const std::string& condition = branch.expression->value.text();
      const bool if_true = way == &branch.body;
      FindingCause cause{site_of(*inside->statement), "some ranks leave the hook here"};
      cause.leaves = GuardedReturn{condition, if_true};
      if (!inside->also.empty()) {
        cause.leaves = {fmt::format("{}({}){}", if_true ? "" : "not ", condition, inside->also)};
      }
      cause.leaves->is_refused = branch.hook == "training_step" && refuses_to_skip(run);
      return cause;
    }
  }
  return std::nullopt;
}

std::optional<int64_t> first_taken_apart(const OneRun& run, SiteId branch) {
  const Journal& journal = *run.result.journal;
  std::map<int64_t, uint32_t> by_turn;
  std::optional<int64_t> first;
  for (int32_t rank = 0; rank < journal.ranks(); ++rank) {
    if (journal.lanes(rank) == 0) {
      continue;
    }
    const Decisions decisions(journal, rank, 0);
    for (const Decision& decision : decisions.all()) {
      if (decision.site == branch &&
          by_turn.emplace(decision.turn, decision.value).first->second != decision.value) {
        first = std::min(first.value_or(decision.row), decision.row);
      }
    }
  }
  return first;
}

std::optional<FindingCause> return_behind(const OneRun& run) {
  const std::optional<ProgramSpec>& program = run.preparation.scenario->program;
  std::optional<FindingCause> found;
  int64_t earliest = std::numeric_limits<int64_t>::max();
  if (!program) {
    return found;
  }
  for_each_statement(*program, [&](const Statement& statement) {
    const auto leaves =
        leaves_something_out(*program, statement) ? return_in_branch(run, statement) : std::nullopt;
    const std::optional<int64_t> row =
        leaves ? first_taken_apart(run, site_of(statement)) : std::nullopt;
    if (row && *row < earliest) {
      earliest = *row;
      found = leaves;
    }
  });
  return found;
}

}  // namespace lockstep::cli
