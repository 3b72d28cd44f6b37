#include "rehearsal/findings/rank_dependence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "model/scenario/expressions_of.hpp"
#include "model/user_program/sites.hpp"
#include "properties/diagnosis/decision.hpp"

namespace lockstep::cli {

namespace {

bool is_of_evaluation(const std::string& hook) {
  return hook.find("validation") != std::string::npos || hook.find("test") != std::string::npos ||
         hook.find("predict") != std::string::npos || hook.starts_with("val_");
}

// What only tells, waits or looks: the weights stay what they are.
bool leaves_training_alone(const Statement& statement) {
  using Kind = StatementKind;
  switch (statement.kind) {
    case Kind::barrier:
    case Kind::new_group:
    case Kind::wait:
    case Kind::wait_stream:
    case Kind::synchronize:
    case Kind::item:
    case Kind::empty_cache:
    case Kind::kernel:
    case Kind::host:
    case Kind::append:
    case Kind::assertion:
    case Kind::log:
    case Kind::log_dict:
    case Kind::update:
    case Kind::compute:
    case Kind::reset:
    case Kind::save_checkpoint: return true;
    case Kind::branch:
    case Kind::repeat:
      return std::ranges::all_of(statement.body, leaves_training_alone) &&
             std::ranges::all_of(statement.otherwise, leaves_training_alone);
    default: return false;
  }
}

/// The sites of `if` and `repeat` that ranks did not decide alike.
std::set<SiteId> sites_decided_apart(const Journal& journal) {
  std::map<std::pair<SiteId, int64_t>, uint32_t> first;
  std::set<SiteId> apart;
  for (int32_t rank = 0; rank < journal.ranks(); ++rank) {
    if (journal.lanes(rank) == 0) {
      continue;
    }
    const Decisions decisions(journal, rank, 0);
    for (const Decision& decision : decisions.all()) {
      const auto [known, fresh] =
          first.emplace(std::pair(decision.site, decision.turn), decision.value);
      if (!fresh && known->second != decision.value) {
        apart.insert(decision.site);
      }
    }
  }
  return apart;
}

// Of what a statement computes with, not of a condition, which is judged by what it decided.
bool computes_with_rank(const Statement& statement) {
  if (statement.kind == StatementKind::branch || statement.kind == StatementKind::repeat) {
    return false;
  }
  constexpr auto names =
      std::to_array<std::string_view>({"rank", "local_rank", "node_rank", "is_global_zero"});
  bool found = false;
  for_each_expression(statement, [&](const Expression& expression) {
    found = found || expression.uses_random() ||
            std::ranges::any_of(expression.names(), [&names](const std::string& name) {
              return std::ranges::count(names, name) > 0;
            });
  });
  return found;
}

}  // namespace

std::optional<RankDependence> rank_dependence_of(const OneRun& run) {
  const std::optional<ProgramSpec>& program = run.preparation.scenario->program;
  if (!program || run.result.journal == nullptr) {
    return std::nullopt;
  }
  const std::set<SiteId> apart = sites_decided_apart(*run.result.journal);
  std::optional<RankDependence> found;
  for_each_statement(*program, [&](const Statement& statement) {
    if (found || is_of_evaluation(statement.hook) || leaves_training_alone(statement)) {
      return;
    }
    if (apart.count(site_of(statement)) != 0) {
      found = {fmt::format("the branch on `{}`", statement.expression->value.text()),
               statement.place};
    } else if (computes_with_rank(statement)) {
      found = {fmt::format("`{}` depends on the rank", name_of(statement.kind)), statement.place};
    }
  });
  return found;
}

}  // namespace lockstep::cli
