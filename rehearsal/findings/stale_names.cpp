#include "rehearsal/findings/stale_names.hpp"

#include "model/scenario/expressions_of.hpp"
#include "model/user_program/sites.hpp"
#include "rehearsal/findings/program_bindings.hpp"

namespace lockstep::cli {

std::set<std::string> stale_names_at(const OneRun& run, SiteId site) {
  std::set<std::string> names;
  for_each_statement(*run.preparation.scenario->program, [&](const Statement& statement) {
    if (site_of(statement) != site) {
      return;
    }
    if (statement.kind == StatementKind::compute || statement.kind == StatementKind::update) {
      if (statement.result) {
        names.insert(statement.result->value);
      }
      return;
    }
    for_each_expression(statement, [&names](const Expression& expression) {
      for (const std::string& name : expression.names()) {
        if (name.starts_with("self.")) {
          names.insert(name);
        }
      }
    });
  });
  return names;
}

std::set<std::string> stale_names(const OneRun& run) {
  std::set<std::string> names;
  for (const RankLog& rank : run.preparation.log->ranks) {
    for (const StatementFinding& finding : rank.findings) {
      if (finding.code == "LS312") {
        names.merge(stale_names_at(run, finding.site));
      }
    }
  }
  return names;
}

bool logs_one_of(const OneRun& run, const std::set<std::string>& names) {
  const Scenario& scenario = *run.preparation.scenario;
  const ProgramBindings bindings(*scenario.program);
  bool found = false;
  for_each_statement(*scenario.program, [&](const Statement& statement) {
    if (statement.log.value) {
      found = found || bindings.is_made_of(statement.log.value->value, names);
    }
    for (const Binding& binding : statement.log.dictionary) {
      found = found || bindings.is_made_of(binding.expression, names);
    }
  });
  return found;
}

}  // namespace lockstep::cli
