#include <fmt/format.h>

#include <algorithm>

#include "io/scenario/forms/section_forms.hpp"
#include "io/scenario/reader/scalar.hpp"
#include "io/scenario/sections/sections.hpp"
#include "io/scenario/statements/statement_table.hpp"
#include "model/scenario/expressions_of.hpp"
#include "model/scenario/hooks.hpp"

namespace lockstep {
namespace {

void set_hook(std::vector<Statement>& statements, const std::string& hook) {
  for (Statement& statement : statements) {
    statement.hook = hook;
    set_hook(statement.body, hook);
    set_hook(statement.otherwise, hook);
  }
}

/// What a list may hold inside grouped statements.
void check_group(Reader& reader, const Statement& group) {
  for (const Statement& member : group.body) {
    const bool pair = member.kind == StatementKind::send || member.kind == StatementKind::recv;
    const bool legal = pair || (group.kind == StatementKind::grouped &&
                                member.kind < StatementKind::batch_isend_irecv);
    if (!legal) {
      reader.fail_at(
          member.place,
          fmt::format("`{}` is not allowed in `{}`", name_of(member.kind), name_of(group.kind)),
          group.kind == StatementKind::grouped ? "it holds collectives, send and recv"
                                               : "it holds send and recv");
    }
  }
}

void check_forms(Reader& reader, const std::vector<Statement>& statements, bool in_main) {
  for (const Statement& statement : statements) {
    if (statement.kind == StatementKind::grouped ||
        statement.kind == StatementKind::batch_isend_irecv) {
      check_group(reader, statement);
    }
    const bool loop =
        statement.kind >= StatementKind::fit && statement.kind <= StatementKind::predict;
    if (loop && !in_main) {
      reader.fail_at(statement.place,
                     fmt::format("`{}` belongs in `main`", name_of(statement.kind)),
                     "hooks run inside the trainer's loops");
    }
    const CommunicationSpec& data = statement.communication;
    if (data.tensor && data.elements) {
      reader.fail_at(data.elements->place,
                     fmt::format("`{}` has `tensor` and `elements`", name_of(statement.kind)),
                     "keep one of the two");
    }
    if (data.tensor && data.dtype) {
      reader.fail_at(data.dtype->place, "`dtype` goes with `elements`: a tensor has its own",
                     "remove `dtype`");
    }
    if ((!statement.ranks.empty() || statement.ranks_expression) && statement.color) {
      reader.fail_at(statement.color->place, "`new_group` has `ranks` and `color`",
                     "keep one of the two");
    }
    if (statement.work.time && (statement.work.flops || statement.work.bytes)) {
      reader.fail_at(statement.work.time->place, "`kernel` has both a time and an amount of work",
                     "keep `time`, or `flops` and `bytes`");
    }
    check_forms(reader, statement.body, in_main);
    check_forms(reader, statement.otherwise, in_main);
  }
}

void read_functions(Reader& reader, const Node& node, ProgramSpec& program) {
  if (node.kind != Node::Kind::map) {
    reader.fail_type(node, "functions", "a map NAME: statements", "write {gather_all: [..]}");
    return;
  }
  for (const Entry& entry : node.entries) {
    if (entry.value->kind == Node::Kind::null) {
      continue;
    }
    if (!is_name(entry.key) || entry.key.find('.') != std::string::npos) {
      reader.fail(entry.mark, fmt::format("`{}` is no name for a function", entry.key),
                  "names are letters, digits and `_`");
      continue;
    }
    Hook function{entry.key, read_statements(reader, *entry.value, entry.key),
                  reader.place(entry.mark)};
    set_hook(function.statements, function.name);
    check_forms(reader, function.statements, false);
    program.functions.push_back(std::move(function));
  }
}

// A call in one section may name a function of another file: all are known only at the end.
void check_calls(Reader& reader, const ProgramSpec& program) {
  std::vector<std::string_view> legal;
  for (const Hook& function : program.functions) {
    legal.push_back(function.name);
  }
  for_each_statement(program, [&](const Statement& statement) {
    if (statement.kind == StatementKind::call && statement.name &&
        program.find_function(statement.name->value) == nullptr) {
      reader.fail_at(statement.name->place,
                     fmt::format("there is no function `{}`", statement.name->value),
                     legal.empty() ? "write it: program: {functions: {NAME: [..]}}"
                                   : spelling_remedy(statement.name->value, legal));
    }
  });
}

}  // namespace

std::optional<ProgramSpec> read_program(Reader& reader, const Node& node) {
  if (node.kind != Node::Kind::map) {
    reader.fail_type(node, "program", "a map HOOK: statements", "write {main: [fit]}");
    return std::nullopt;
  }
  ProgramSpec program;
  program.place = reader.place(node);
  for (const Entry& entry : node.entries) {
    if (entry.value->kind == Node::Kind::null) {
      continue;
    }
    if (entry.key == "automatic_optimization") {
      const KeyRow row{"automatic_optimization", "true", ""};
      fill<BoolForm>(reader, *entry.value, row, program.automatic_optimization);
      continue;
    }
    if (entry.key == "functions") {
      read_functions(reader, *entry.value, program);
      continue;
    }
    if (!is_hook(entry.key)) {
      std::vector<std::string_view> legal = {"automatic_optimization", "functions"};
      for (const HookName& hook : hook_names()) {
        legal.push_back(hook.name);
      }
      fail_unknown_key(reader, entry, "program", legal);
      continue;
    }
    Hook hook{entry.key, read_statements(reader, *entry.value, entry.key),
              reader.place(entry.mark)};
    set_hook(hook.statements, hook.name);
    check_forms(reader, hook.statements, hook.name == "main");
    program.hooks.push_back(std::move(hook));
  }
  check_calls(reader, program);
  return program;
}

}  // namespace lockstep
