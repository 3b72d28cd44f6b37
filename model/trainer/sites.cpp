#include "model/trainer/sites.hpp"

#include <fmt/core.h>

namespace lockstep {

namespace {

Site describe(const Statement& statement, const std::string& hook, SiteId guard) {
  Site site;
  site.description = name_of(statement.kind);
  site.file = statement.place.file;
  site.line = statement.place.line;
  site.column = statement.place.column;
  site.at = value_or(statement.at, std::string());
  site.hook = hook;
  site.guard = guard;
  const bool guards =
      statement.kind == StatementKind::branch || statement.kind == StatementKind::repeat;
  if (guards && statement.expression) {
    site.condition = statement.expression->value.text();
  }
  return site;
}

void add_all(const std::vector<Statement>& statements, const std::string& hook, SiteId guard,
             Sites& sites) {
  for (const Statement& statement : statements) {
    const SiteId id = sites.add(describe(statement, hook, guard));
    const bool guards =
        statement.kind == StatementKind::branch || statement.kind == StatementKind::repeat;
    add_all(statement.body, hook, guards ? id : guard, sites);
    add_all(statement.otherwise, hook, guards ? id : guard, sites);
  }
}

void add_logs(const std::vector<Statement>& statements, Sites& sites,
              std::map<std::string, SiteId>& known) {
  for (const Statement& statement : statements) {
    if (statement.kind == StatementKind::log && statement.log.name) {
      known.try_emplace(statement.log.name->value, site_of(statement));
    }
    for (const Binding& binding : statement.log.dictionary) {
      if (known.count(binding.name) != 0) {
        continue;
      }
      Site site = *sites.find(site_of(statement));
      site.description = "log of `" + binding.name + "`";
      site.line = binding.expression.place().line;
      site.column = binding.expression.place().column;
      known.emplace(binding.name, sites.add(site));
    }
    add_logs(statement.body, sites, known);
    add_logs(statement.otherwise, sites, known);
  }
}

}  // namespace

std::map<std::string, SiteId> add_log_sites(const ProgramSpec& program, Sites& sites) {
  std::map<std::string, SiteId> known;
  for (const Hook& hook : program.hooks) {
    add_logs(hook.statements, sites, known);
  }
  return known;
}

SiteId site_of(const SourcePlace& place) {
  return site_id(fmt::format("{}:{}:{}", place.file, place.line, place.column));
}

SiteId site_of(const Statement& statement) {
  return statement.place.line > 0 ? site_of(statement.place) : site_id(name_of(statement.kind));
}

Sites sites_of(const ProgramSpec& program) {
  Sites sites;
  for (const Hook& hook : program.hooks) {
    add_all(hook.statements, hook.name, no_site, sites);
  }
  return sites;
}

}  // namespace lockstep
