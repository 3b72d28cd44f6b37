#include "model/trainer/prepare/counted_names.hpp"

#include <algorithm>

#include "model/scenario/expressions_of.hpp"

namespace lockstep {

namespace {

using Node = ExpressionNode;

const std::set<std::string, std::less<>>& names_of_ranks() {
  static const std::set<std::string, std::less<>> names = {"rank", "local_rank", "node_rank",
                                                           "is_global_zero"};
  return names;
}

bool is_fixed(const std::string& name) { return name == "world_size" || name == "num_batches"; }

bool has_list(const Node& node) {
  return node.kind == Node::Kind::list ||
         std::ranges::any_of(node.parts, [](const auto& part) { return has_list(*part); });
}

}  // namespace

// A name of the module outlives the batch in which it was bound, so that a counter in it may be
// that of an earlier one.
CountedNames::CountedNames(const ProgramSpec& program, bool knows_steps)
    : counters_({"batch_idx", "epoch", "is_last_batch"}) {
  if (knows_steps) {
    counters_.insert("global_step");
  }
  std::map<std::string, int> times;
  Bound once;
  for_each_statement(program, [&](const Statement& statement) {
    for (const Binding& binding : statement.bindings) {
      ++times[binding.name];
      once.emplace(binding.name, binding.expression);
    }
    if (statement.result) {
      times[statement.result->value] += 2;  // what a statement gives is no expression
    }
  });
  for (const auto& [name, count] : times) {
    rebound_.insert(name);
  }
  for (bool grows = true; grows;) {
    grows = false;
    for (const auto& [name, expression] : once) {
      const bool stays = name.starts_with("self.");
      const bool counts = std::ranges::any_of(
          expression.names(), [&](const auto& part) { return counters_.contains(part); });
      if (times[name] == 1 && !bound_.contains(name) && holds(expression) && !(stays && counts)) {
        bound_.emplace(name, expression);
        grows = true;
      }
    }
  }
}

bool CountedNames::is_known(const std::string& name) const {
  return bound_.contains(name) ||
         (!rebound_.contains(name) &&
          (counters_.contains(name) || names_of_ranks().contains(name) || is_fixed(name)));
}

bool CountedNames::holds(const Expression& expression) const {
  return !expression.uses_random() && !expression.uses_unknown() &&
         std::ranges::all_of(expression.names(), [&](const auto& name) { return is_known(name); });
}

bool CountedNames::is_number(const Expression& expression) const {
  return holds(expression) && expression.functions().empty() && !has_list(expression.root()) &&
         std::ranges::none_of(expression.names(),
                              [&](const auto& name) { return bound_.contains(name); });
}

bool CountedNames::differ_by_rank(const std::vector<Expression>& expressions) const {
  const auto differs = [](const Expression& expression) {
    return std::ranges::any_of(expression.names(),
                               [](const auto& name) { return names_of_ranks().contains(name); });
  };
  return std::ranges::any_of(expressions, differs) ||
         std::ranges::any_of(bound_, [&](const auto& name) { return differs(name.second); });
}

}  // namespace lockstep
