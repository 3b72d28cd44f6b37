#include "model/expression/evaluate.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/expression/arithmetic.hpp"

namespace lockstep {

namespace {

using Node = ExpressionNode;

// Runs an operation on values; what it throws gets the place.
template <class Operation>
auto placed(const SourcePlace& place, Operation operation) {
  try {
    return operation();
  } catch (const OperationError& error) {
    throw EvaluationError(place, error.what(), error.remedy());
  } catch (const QuantityOverflow& error) {
    throw EvaluationError(place, error.what(), "");
  }
}

std::string functions_known() {
  return fmt::format("the functions are {}, and those of torchmetrics.functional",
                     fmt::join(function_names(), " "));
}

class Evaluator {
 public:
  Evaluator(Environment& environment, const EvaluationLimits& limits)
      : environment_(environment), limits_(limits) {}

  Value evaluate(const Node& node);

 private:
  Value value_of_name(const Node& node);
  Value list(const Node& node);
  Value unary(const Node& node);
  Value binary(const Node& node);
  Value logical(const Node& node);
  bool decides_without_unknown(const Node& node, bool decisive);
  Value call(const Node& node);
  Value index(const Node& node);
  List parts(const Node& node);
  // Counts what was made against the limit.
  Value made(const Node& node, Value value);

  Environment& environment_;
  const EvaluationLimits& limits_;
  Int128 made_bytes_ = 0;
};

Value Evaluator::made(const Node& node, Value value) {
  made_bytes_ += value.held_bytes();
  if (made_bytes_ > limits_.made.count()) {
    throw EvaluationError(node.place,
                          fmt::format("the values of this expression take more than {}",
                                      text_of(Value(limits_.made))),
                          "use smaller tensors");
  }
  return value;
}

Value Evaluator::evaluate(const Node& node) {
  switch (node.kind) {
    case Node::Kind::constant: return node.value;
    case Node::Kind::name: return value_of_name(node);
    case Node::Kind::unknown: return environment_.unknown(node.place);
    case Node::Kind::list: return made(node, list(node));
    case Node::Kind::unary: return made(node, unary(node));
    case Node::Kind::binary: return made(node, binary(node));
    case Node::Kind::call: return made(node, call(node));
    case Node::Kind::index: return made(node, index(node));
  }
  return {};
}

Value Evaluator::value_of_name(const Node& node) {
  const std::optional<Value> value =
      placed(node.place, [&] { return environment_.lookup(node.name); });
  if (!value) {
    const bool function = find_function(node.name) != nullptr;
    throw UnboundNameError(
        node.place, fmt::format("`{}` is not bound here", node.name),
        function ? fmt::format("it is a function: write {}", find_function(node.name)->form)
                 : "bind it first with `let` or `as`; text is written 'text'");
  }
  return *value;
}

List Evaluator::parts(const Node& node) {
  List values;
  values.reserve(node.parts.size());
  for (const ExpressionNodePointer& part : node.parts) {
    values.push_back(evaluate(*part));
  }
  return values;
}

Value Evaluator::list(const Node& node) {
  List items = parts(node);
  return placed(node.place, [&] { return Value(std::move(items)); });
}

Value Evaluator::unary(const Node& node) {
  const Value value = evaluate(*node.parts[0]);
  if (node.operation == Operator::logical_not) {
    return placed(node.parts[0]->place, [&] { return !condition_of(value); });
  }
  return placed(node.place, [&] { return negated(value); });
}

bool asks_unknown(const Node& node) {
  return node.kind == Node::Kind::unknown ||
         std::ranges::any_of(node.parts, [](const auto& part) { return asks_unknown(*part); });
}

// It may be evaluated at any time, and nobody sees it.
bool is_plain(const Node& node) {
  if (node.kind == Node::Kind::call) {
    const Function* function = find_function(node.name);
    if (function == nullptr || function->apply == nullptr) {
      return false;
    }
  }
  return node.kind != Node::Kind::unknown &&
         std::ranges::all_of(node.parts, [](const auto& part) { return is_plain(*part); });
}

// `unknown and epoch == 2` has no two outcomes in epoch 0: what is certain comes first, unless it
// has a value only where the `unknown` before it has come true.
bool Evaluator::decides_without_unknown(const Node& node, bool decisive) {
  const Node& right = *node.parts.back();
  if (node.parts.size() != 2 || !asks_unknown(*node.parts.front()) || !is_plain(right)) {
    return false;
  }
  try {
    return condition_of(evaluate(right)) == decisive;
  } catch (const EvaluationError&) {
    return false;
  } catch (const OperationError&) {
    return false;
  }
}

Value Evaluator::logical(const Node& node) {
  const bool decisive = node.operation == Operator::logical_or;
  if (decides_without_unknown(node, decisive)) {
    return decisive;
  }
  for (const ExpressionNodePointer& part : node.parts) {
    const Value value = evaluate(*part);
    const bool holds = placed(part->place, [&] { return condition_of(value); });
    if (holds == decisive) {
      return holds;
    }
  }
  return node.operation == Operator::logical_and;
}

Value Evaluator::binary(const Node& node) {
  if (node.operation == Operator::logical_or || node.operation == Operator::logical_and) {
    return logical(node);
  }
  const Value left = evaluate(*node.parts[0]);
  const Value right = evaluate(*node.parts[1]);
  return placed(node.place, [&] { return apply(node.operation, left, right); });
}

Value Evaluator::index(const Node& node) {
  const Value value = evaluate(*node.parts[0]);
  const Value position = evaluate(*node.parts[1]);
  return placed(node.place, [&] { return at(value, position); });
}

Value Evaluator::call(const Node& node) {
  const List arguments = parts(node);
  const Function* function = find_function(node.name);
  if (function == nullptr) {
    std::optional<Value> value =
        placed(node.place, [&] { return environment_.call(node.name, arguments); });
    if (!value) {
      throw EvaluationError(node.place, fmt::format("there is no function `{}`", node.name),
                            functions_known());
    }
    return std::move(*value);
  }
  const auto count = static_cast<int>(arguments.size());
  if (count < function->least_arguments ||
      (function->most_arguments >= 0 && count > function->most_arguments)) {
    throw EvaluationError(
        node.place,
        fmt::format("`{}` was given {} argument{}", node.name, count, count == 1 ? "" : "s"),
        fmt::format("write {}", function->form));
  }
  if (function->apply == nullptr) {
    return environment_.random(node.place);
  }
  return placed(node.place, [&] { return function->apply(arguments, limits_); });
}

}  // namespace

std::optional<Value> Environment::call(std::string_view, std::span<const Value>) {
  return std::nullopt;
}

Value evaluate(const Expression& expression, Environment& environment,
               const EvaluationLimits& limits) {
  return Evaluator(environment, limits).evaluate(expression.root());
}

bool evaluate_condition(const Expression& expression, Environment& environment) {
  const Value value = evaluate(expression, environment);
  return placed(expression.place(), [&] { return condition_of(value); });
}

void evaluate_each_condition(const ExpressionNode& node, Environment& environment) {
  const bool connects =
      node.kind == ExpressionNode::Kind::binary &&
      (node.operation == Operator::logical_and || node.operation == Operator::logical_or);
  if (connects) {
    for (const ExpressionNodePointer& part : node.parts) {
      evaluate_each_condition(*part, environment);
    }
    return;
  }
  evaluate_condition(Expression(std::make_shared<const ExpressionNode>(node), ""), environment);
}

int64_t evaluate_integer(const Expression& expression, Environment& environment,
                         std::string_view what) {
  const Value value = evaluate(expression, environment);
  return placed(expression.place(), [&] { return integer_of(value, what); });
}

}  // namespace lockstep
