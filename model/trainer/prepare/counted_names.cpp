#include "model/trainer/prepare/counted_names.hpp"

#include <algorithm>
#include <numeric>

#include "model/scenario/expressions_of.hpp"

namespace lockstep {

namespace {

using Node = ExpressionNode;

constexpr int64_t period_max = 1'000'000;

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

// Of `counter % 100` and the like; what compares a counter with a number changes where it does.
int64_t CountedNames::remainders(const Node& node, int64_t period) const {
  if (node.kind == Node::Kind::binary && node.operation == Operator::modulo) {
    const Node* by = node.parts.at(1).get();
    if (by->kind == Node::Kind::name && bound_.contains(by->name)) {
      by = &bound_.find(by->name)->second.root();
    }
    const bool is_count = by->kind == Node::Kind::constant && by->value.is(Value::Kind::integer) &&
                          by->value.integer() > 0 && by->value.integer() < period_max;
    return is_count ? std::lcm(period, by->value.integer()) : 0;
  }
  if (node.kind == Node::Kind::name && bound_.contains(node.name)) {
    return remainders(bound_.find(node.name)->second.root(), period);
  }
  for (const auto& part : node.parts) {
    period = period > 0 && period < period_max ? remainders(*part, period) : 0;
  }
  return period;
}

int64_t CountedNames::period_of(const std::vector<Expression>& expressions, int64_t window) const {
  int64_t period = 1;
  const auto differs_by_rank = [](const Expression& expression) {
    return std::ranges::any_of(expression.names(), [](const auto& name) {
      return names_of_ranks().contains(name) || name == "num_batches";
    });
  };
  const bool by_rank =
      std::ranges::any_of(expressions, differs_by_rank) ||
      std::ranges::any_of(bound_, [&](const auto& name) { return differs_by_rank(name.second); });
  for (const Expression& expression : expressions) {
    period = period > 0 ? remainders(expression.root(), period) : 0;
  }
  return by_rank ? 0 : period * window;
}

}  // namespace lockstep
