#include "rehearsal/findings/program_bindings.hpp"

#include <algorithm>

#include "model/scenario/expressions_of.hpp"

namespace lockstep::cli {

ProgramBindings::ProgramBindings(const ProgramSpec& program) {
  for_each_statement(program, [this](const Statement& statement) {
    for (const Binding& binding : statement.bindings) {
      bound_[binding.name].push_back(&binding.expression);
    }
    if (statement.result && statement.communication.tensor) {
      bound_[statement.result->value].push_back(&statement.communication.tensor->value);
      if (statement.kind == StatementKind::all_gather) {
        gathered_.insert(statement.result->value);
      }
    }
  });
}

bool ProgramBindings::any_name(const ExpressionNode& node, const std::set<std::string>& wanted,
                               std::set<std::string>& seen) const {
  if (node.kind == ExpressionNode::Kind::name) {
    if (wanted.count(node.name) != 0) {
      return true;
    }
    const auto bound = bound_.find(node.name);
    if (bound != bound_.end() && seen.insert(node.name).second) {
      return std::ranges::any_of(bound->second, [&](const Expression* expression) {
        return any_name(expression->root(), wanted, seen);
      });
    }
  }
  return std::ranges::any_of(
      node.parts, [&](const ExpressionNodePointer& part) { return any_name(*part, wanted, seen); });
}

bool ProgramBindings::is_made_of(const Expression& expression,
                                 const std::set<std::string>& names) const {
  std::set<std::string> seen;
  return !names.empty() && any_name(expression.root(), names, seen);
}

// False where what is gathered was made of a batch before: a metric, a mean, a ratio.
bool ProgramBindings::gathers_samples(const ExpressionNode& node, const LoggedOrigins& origins,
                                      std::set<std::string>& seen, bool& found) const {
  const auto bound = bound_.find(node.name);
  if (node.kind == ExpressionNode::Kind::name && bound != bound_.end() &&
      seen.insert(node.name).second) {
    const bool is_gathered = gathered_.count(node.name) != 0;
    found = found || is_gathered;
    for (const Expression* expression : bound->second) {
      const Origin origin = is_gathered ? origins.of(*expression) : Origin();
      const bool of_batch = !origin.class_name.empty() || origin.is_mean || origin.is_ratio;
      if (of_batch ||
          (!is_gathered && !gathers_samples(expression->root(), origins, seen, found))) {
        return false;
      }
    }
  }
  return std::ranges::all_of(node.parts, [&](const ExpressionNodePointer& part) {
    return gathers_samples(*part, origins, seen, found);
  });
}

bool ProgramBindings::is_of_gathered(const Expression& expression,
                                     const LoggedOrigins& origins) const {
  std::set<std::string> seen;
  bool found = false;
  return gathers_samples(expression.root(), origins, seen, found) && found;
}

}  // namespace lockstep::cli
