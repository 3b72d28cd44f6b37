#include "model/user_program/sites.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "model/scenario/expressions_of.hpp"

namespace lockstep {

namespace {

constexpr std::string_view in_backward = "in its backward";
constexpr std::string_view at_end_of_epoch = "at the end of the epoch";
constexpr std::string_view as_unknown = "unknown";

// What a call moves: ranks that move it in two statements, such as the ways of an `if`, mean the
// same call.
std::string data_of(const Statement& statement) {
  const CommunicationSpec& communication = statement.communication;
  if (communication.tensor) {
    return communication.tensor->value.text();
  }
  if (statement.kind == StatementKind::save_checkpoint) {
    return "checkpoint";
  }
  if (statement.kind == StatementKind::new_group) {
    return value_or(statement.result, std::string());  // the name of the group
  }
  return communication.elements ? communication.elements->value.text() + " elements" : "";
}

/// The `if` or `repeat` that directly encloses statements.
struct Guard {
  SiteId site{};
  bool in_else = false;
};

Site describe(const Statement& statement, const std::string& hook, Guard guard) {
  Site site = site_at(statement.place, name_of(statement.kind));
  site.at = value_or(statement.at, std::string());
  site.hook = hook;
  site.guard = guard.site;
  site.in_else = guard.in_else;
  site.data = data_of(statement);
  site.is_barrier =
      statement.kind == StatementKind::barrier || statement.kind == StatementKind::save_checkpoint;
  const bool guards =
      statement.kind == StatementKind::branch || statement.kind == StatementKind::repeat;
  const bool stops = statement.kind == StatementKind::should_stop;
  site.stop = stops ? StopRole::sets : StopRole::none;
  const bool decides = guards || stops;
  if (decides && statement.expression) {
    site.condition = statement.expression->value.text();
  }
  return site;
}

void add_unknowns(const ExpressionNode& node, const std::string& hook, Sites& sites) {
  if (node.kind == ExpressionNode::Kind::unknown) {
    Site site = site_at(node.place, as_unknown);
    site.hook = hook;
    site.part = as_unknown;
    sites.add(site);
  }
  for (const ExpressionNodePointer& part : node.parts) {
    add_unknowns(*part, hook, sites);
  }
}

void add_all(const std::vector<Statement>& statements, const std::string& hook, Guard guard,
             Sites& sites) {
  for (const Statement& statement : statements) {
    Site site = describe(statement, hook, guard);
    const SiteId id = sites.add(site);
    for_each_expression(statement, [&](const Expression& expression) {
      add_unknowns(expression.root(), hook, sites);
    });
    if (value_or(statement.communication.sync_grads, false)) {
      site.part = in_backward;
      sites.add(site);
    }
    const bool guards =
        statement.kind == StatementKind::branch || statement.kind == StatementKind::repeat;
    add_all(statement.body, hook, guards ? Guard{id, false} : guard, sites);
    add_all(statement.otherwise, hook, guards ? Guard{id, true} : guard, sites);
  }
}

// Entries of a dictionary that is logged as a whole have the place of its name.
bool shares_its_place(const Statement& statement, const Binding& binding) {
  const std::vector<Binding>& all = statement.log.dictionary;
  return std::count_if(all.begin(), all.end(), [&](const Binding& other) {
           return other.expression.place() == binding.expression.place();
         }) > 1;
}

LogSites log_sites_of(Site site, const std::string& key, Sites& sites) {
  site.logged_key = key;
  Site epoch = site;
  epoch.part = (site.part.empty() ? "" : site.part + " ") + std::string(at_end_of_epoch);
  return {sites.add(site), sites.add(epoch)};
}

void add_logs(const std::vector<Statement>& statements, Sites& sites,
              std::map<std::string, LogSites>& known) {
  for (const Statement& statement : statements) {
    if (statement.kind == StatementKind::log && statement.log.name &&
        known.count(statement.log.name->value) == 0) {
      const Site site = *sites.find(site_of(statement));
      const std::string& key = statement.log.name->value;
      known.emplace(key, log_sites_of(site, key, sites));
    }
    for (const Binding& binding : statement.log.dictionary) {
      if (known.count(binding.name) != 0) {
        continue;
      }
      Site site = *sites.find(site_of(statement));
      site.description = "log of `" + binding.name + "`";
      site.line = binding.expression.place().line;
      site.column = binding.expression.place().column;
      site.part = shares_its_place(statement, binding) ? "`" + binding.name + "`" : "";
      known.emplace(binding.name, log_sites_of(site, binding.name, sites));
    }
    add_logs(statement.body, sites, known);
    add_logs(statement.otherwise, sites, known);
  }
}

}  // namespace

std::map<std::string, LogSites> add_log_sites(const ProgramSpec& program, Sites& sites) {
  std::map<std::string, LogSites> known;
  for (const auto* hooks : {&program.hooks, &program.functions}) {
    for (const Hook& hook : *hooks) {
      add_logs(hook.statements, sites, known);
    }
  }
  return known;
}

SiteId site_of(const SourcePlace& place) {
  return site_id(fmt::format("{}:{}:{}", place.file, place.line, place.column));
}

SiteId site_of(const Statement& statement) {
  return statement.place.line > 0 ? site_of(statement.place) : site_id(name_of(statement.kind));
}

Site site_at(const SourcePlace& place, std::string_view description) {
  Site site;
  site.description = description;
  site.file = place.file;
  site.line = place.line;
  site.column = place.column;
  return site;
}

SiteId unknown_site_of(const SourcePlace& place) {
  return site_id(fmt::format("{}:{}:{}, {}", place.file, place.line, place.column, as_unknown));
}

SiteId backward_site_of(const Statement& statement) {
  const SourcePlace& place = statement.place;
  return site_id(fmt::format("{}:{}:{}, {}", place.file, place.line, place.column, in_backward));
}

bool runs_outside_of_its_hook(const Site& site) {
  return site.part == in_backward || site.part.find(at_end_of_epoch) != std::string::npos;
}

Sites sites_of(const ProgramSpec& program) {
  Sites sites;
  for (const Hook& hook : program.hooks) {
    Site site = site_at(hook.place, "the hook " + hook.name);
    site.hook = hook.name;
    sites.add(site);
    add_all(hook.statements, hook.name, {}, sites);
  }
  for (const Hook& function : program.functions) {
    add_all(function.statements, function.name, {}, sites);
  }
  return sites;
}

}  // namespace lockstep
