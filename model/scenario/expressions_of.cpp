#include "model/scenario/expressions_of.hpp"

#include <set>

namespace lockstep {

void for_each_statement(const std::vector<Statement>& statements,
                        const std::function<void(const Statement&)>& visit) {
  for (const Statement& statement : statements) {
    visit(statement);
    for_each_statement(statement.body, visit);
    for_each_statement(statement.otherwise, visit);
  }
}

void for_each_statement(const ProgramSpec& program,
                        const std::function<void(const Statement&)>& visit) {
  for (const auto* hooks : {&program.hooks, &program.functions}) {
    for (const Hook& hook : *hooks) {
      for_each_statement(hook.statements, visit);
    }
  }
}

const Statement* find_statement(const ProgramSpec& program, StatementKind kind) {
  for (const auto* hooks : {&program.hooks, &program.functions}) {
    for (const Hook& hook : *hooks) {
      if (const Statement* found = find_statement(hook, kind)) {
        return found;
      }
    }
  }
  return nullptr;
}

const Statement* find_reached_statement(const ProgramSpec& program, const Hook& hook,
                                        StatementKind kind) {
  std::vector<const Hook*> open = {&hook};
  std::set<const Hook*> seen = {&hook};
  for (size_t next = 0; next < open.size(); ++next) {
    if (const Statement* found = find_statement(*open[next], kind)) {
      return found;
    }
    for_each_statement(open[next]->statements, [&](const Statement& statement) {
      const bool calls = statement.kind == StatementKind::call && statement.name;
      const Hook* const function = calls ? program.find_function(statement.name->value) : nullptr;
      if (function != nullptr && seen.insert(function).second) {
        open.push_back(function);
      }
    });
  }
  return nullptr;
}

const Statement* find_statement(const Hook& hook, StatementKind kind) {
  const Statement* found = nullptr;
  for_each_statement(hook.statements, [&](const Statement& statement) {
    found = found == nullptr && statement.kind == kind ? &statement : found;
  });
  return found;
}

void for_each_expression(const Statement& statement,
                         const std::function<void(const Expression&)>& visit) {
  const CommunicationSpec& communication = statement.communication;
  const DeviceWork& work = statement.work;
  for (const Given<Expression>* given :
       {&communication.tensor, &communication.elements, &communication.src, &communication.dst,
        &communication.tag, &work.time, &work.flops, &work.bytes, &work.tensor,
        &statement.log.value, &statement.log.batch_size, &statement.ranks_expression,
        &statement.color, &statement.expression, &statement.sync_grad, &statement.preds,
        &statement.target, &statement.indexes, &statement.weight}) {
    if (*given) {
      visit((*given)->value);
    }
  }
  if (communication.name) {
    for (const Expression& value : communication.name->value.values) {
      visit(value);
    }
  }
  for (const std::vector<Placed<Expression>>* list :
       {&communication.input_split_sizes, &communication.output_split_sizes, &statement.ranks}) {
    for (const Placed<Expression>& item : *list) {
      visit(item.value);
    }
  }
  for (const std::vector<Binding>* bindings : {&statement.bindings, &statement.log.dictionary}) {
    for (const Binding& binding : *bindings) {
      visit(binding.expression);
    }
  }
}

}  // namespace lockstep
