#include "model/expression/differentiate.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "model/expression/tensor.hpp"

namespace lockstep {

namespace {

using Node = ExpressionNode;
using NodeKind = ExpressionNode::Kind;

// Functions whose result is a plain number, without a history for gradients.
bool leaves_graph(const Node& node) {
  static const std::set<std::string_view> functions = {"len",   "shape", "isnan",  "int",
                                                       "float", "range", "arange", "random"};
  switch (node.kind) {
    case NodeKind::call: return functions.count(node.name) != 0;
    case NodeKind::unary: return node.operation == Operator::logical_not;
    case NodeKind::binary:
      return is_comparison(node.operation) || node.operation == Operator::logical_and ||
             node.operation == Operator::logical_or || node.operation == Operator::floor_divide;
    default: return false;
  }
}

bool depends(const Node& node, const std::function<bool(std::string_view)>& tracked) {
  if (node.kind == NodeKind::name) {
    return tracked(node.name);
  }
  const auto last = node.kind == NodeKind::index ? node.parts.begin() + 1 : node.parts.end();
  return !leaves_graph(node) &&
         std::any_of(node.parts.begin(), last,
                     [&](const ExpressionNodePointer& part) { return depends(*part, tracked); });
}

void flatten(const Value& value, Adjoint& numbers) {
  if (value.is(Value::Kind::tensor)) {
    const Values& values = value.tensor().values;
    for (int64_t i = 0; i < values.size(); ++i) {
      numbers.push_back(values.number(i));
    }
  } else if (value.is(Value::Kind::list)) {
    for (const Value& item : value.list()) {
      flatten(item, numbers);
    }
  } else {
    numbers.push_back(value.is_number() ? value.number() : 0);
  }
}

Adjoint numbers_of(const Value& value) {
  Adjoint numbers;
  flatten(value, numbers);
  return numbers;
}

class Reverse {
 public:
  Reverse(Environment& environment, const std::vector<std::string>& tracked)
      : environment_(environment), tracked_(tracked) {}

  void pull(const ExpressionNodePointer& node, const Adjoint& adjoint);

  std::map<std::string, Adjoint> result;

 private:
  bool reaches(const Node& node) const {
    return depends(node, [this](std::string_view name) {
      return std::ranges::find(tracked_, name) != tracked_.end();
    });
  }
  Value value_of(const ExpressionNodePointer& node) {
    return evaluate(Expression(node, ""), environment_);
  }
  void pull_list(const Node& node, const Adjoint& adjoint);
  void pull_binary(const Node& node, const Adjoint& adjoint);
  void pull_index(const Node& node, const Adjoint& adjoint);
  void pull_call(const Node& node, const Adjoint& adjoint);
  void pull_operand(const ExpressionNodePointer& operand, const Adjoint& adjoint, size_t size);

  Environment& environment_;
  const std::vector<std::string>& tracked_;
};

[[noreturn]] void fail(const Node& node, const std::string& what) {
  throw EvaluationError(
      node.place, fmt::format("the gradient of {} is not modelled", what),
      "gradients flow through + - * / **, sum, mean, min, max, abs, sqrt, exp, log, "
      "softmax, concat and x[i]");
}

void Reverse::pull(const ExpressionNodePointer& node, const Adjoint& adjoint) {
  if (!reaches(*node)) {
    return;
  }
  switch (node->kind) {
    case NodeKind::name: {
      Adjoint& sum = result[node->name];
      sum.resize(adjoint.size());
      std::ranges::transform(sum, adjoint, sum.begin(), std::plus<>());
      return;
    }
    case NodeKind::list: return pull_list(*node, adjoint);
    case NodeKind::unary: {
      Adjoint negated = adjoint;
      std::ranges::transform(negated, negated.begin(), std::negate<>());
      return pull(node->parts[0], negated);
    }
    case NodeKind::binary: return pull_binary(*node, adjoint);
    case NodeKind::index: return pull_index(*node, adjoint);
    case NodeKind::call: return pull_call(*node, adjoint);
    default: return;
  }
}

void Reverse::pull_list(const Node& node, const Adjoint& adjoint) {
  auto begin = adjoint.begin();
  for (const ExpressionNodePointer& part : node.parts) {
    const auto size = static_cast<ptrdiff_t>(numbers_of(value_of(part)).size());
    pull(part, Adjoint(begin, begin + size));
    begin += size;
  }
}

// An operand that was extended to the other's shape receives the sum.
void Reverse::pull_operand(const ExpressionNodePointer& operand, const Adjoint& adjoint,
                           size_t size) {
  pull(operand, size == adjoint.size()
                    ? adjoint
                    : Adjoint{std::accumulate(adjoint.begin(), adjoint.end(), 0.0)});
}

void Reverse::pull_binary(const Node& node, const Adjoint& adjoint) {
  const Adjoint left = numbers_of(value_of(node.parts[0]));
  const Adjoint right = numbers_of(value_of(node.parts[1]));
  Adjoint to_left = adjoint;
  Adjoint to_right = adjoint;
  for (size_t i = 0; i < adjoint.size(); ++i) {
    const double a = left[left.size() == 1 ? 0 : i];
    const double b = right[right.size() == 1 ? 0 : i];
    switch (node.operation) {
      case Operator::add: break;
      case Operator::subtract: to_right[i] *= -1; break;
      case Operator::multiply:
        to_left[i] *= b;
        to_right[i] *= a;
        break;
      case Operator::divide:
        to_left[i] /= b;
        to_right[i] *= -a / (b * b);
        break;
      case Operator::power:
        to_left[i] *= b * std::pow(a, b - 1);
        to_right[i] *= std::pow(a, b) * std::log(a);
        break;
      default: fail(node, fmt::format("`{}`", name_of(node.operation)));
    }
  }
  pull_operand(node.parts[0], to_left, left.size());
  pull_operand(node.parts[1], to_right, right.size());
}

void Reverse::pull_index(const Node& node, const Adjoint& adjoint) {
  const Value whole = value_of(node.parts[0]);
  const Value index = value_of(node.parts[1]);
  Adjoint spread(numbers_of(whole).size());
  if (!index.is(Value::Kind::integer) || spread.empty()) {
    fail(node, "an index that is no int");
  }
  const auto items = static_cast<int64_t>(
      whole.is(Value::Kind::list) ? whole.list().size()
                                  : spread.size() / std::max<size_t>(1, adjoint.size()));
  const int64_t at = index.integer() < 0 ? index.integer() + items : index.integer();
  size_t begin = static_cast<size_t>(at) * adjoint.size();
  if (whole.is(Value::Kind::list)) {
    begin = 0;
    for (int64_t item = 0; item < at; ++item) {
      begin += numbers_of(whole.list()[static_cast<size_t>(item)]).size();
    }
  }
  std::ranges::copy(adjoint, spread.begin() + static_cast<ptrdiff_t>(begin));
  pull(node.parts[0], spread);
}

Adjoint extremes(const Node& node, const Adjoint& x) {
  const double extreme =
      node.name == "min" ? *std::ranges::min_element(x) : *std::ranges::max_element(x);
  const auto ties = static_cast<double>(std::ranges::count(x, extreme));
  Adjoint share(x.size());
  std::ranges::transform(x, share.begin(), [&](double v) { return v == extreme ? 1 / ties : 0; });
  return share;
}

// Over rows of the last dimension.
Adjoint softmax_back(const Value& argument, const Adjoint& adjoint) {
  const Tensor input = tensor_of(argument);
  const Adjoint y = numbers_of(Value(softmax(input)));
  const auto row = static_cast<size_t>(input.shape.empty() ? 1 : input.shape.back());
  Adjoint back(y.size());
  for (size_t begin = 0; begin < y.size(); begin += row) {
    double dot = 0;
    for (size_t i = begin; i < begin + row; ++i) {
      dot += adjoint[i] * y[i];
    }
    for (size_t i = begin; i < begin + row; ++i) {
      back[i] = y[i] * (adjoint[i] - dot);
    }
  }
  return back;
}

void Reverse::pull_call(const Node& node, const Adjoint& adjoint) {
  if (node.parts.size() != 1) {
    fail(node, fmt::format("`{}` of several", node.name));
  }
  const Value argument = value_of(node.parts[0]);
  Adjoint x = numbers_of(argument);
  if (node.name == "concat") {
    return pull(node.parts[0], adjoint);
  }
  if (node.name == "sum" || node.name == "mean") {
    const double share = node.name == "sum" ? 1 : 1 / static_cast<double>(x.size());
    std::ranges::fill(x, adjoint.front() * share);
  } else if (node.name == "min" || node.name == "max") {
    x = extremes(node, x);
    std::ranges::transform(x, x.begin(), [&](double share) { return share * adjoint.front(); });
  } else if (node.name == "abs") {
    std::ranges::transform(x, adjoint, x.begin(), [](double value, double back) {
      return value > 0 ? back : value < 0 ? -back : 0;
    });
  } else if (node.name == "sqrt") {
    std::ranges::transform(x, adjoint, x.begin(),
                           [](double value, double back) { return back / (2 * std::sqrt(value)); });
  } else if (node.name == "exp") {
    std::ranges::transform(x, adjoint, x.begin(),
                           [](double value, double back) { return back * std::exp(value); });
  } else if (node.name == "log") {
    std::ranges::transform(x, adjoint, x.begin(),
                           [](double value, double back) { return back / value; });
  } else if (node.name == "softmax") {
    x = softmax_back(argument, adjoint);
  } else {
    fail(node, fmt::format("`{}`", node.name));
  }
  pull(node.parts[0], x);
}

}  // namespace

bool is_differentiable_in(const Expression& expression,
                          const std::function<bool(std::string_view)>& tracked) {
  return depends(expression.root(), tracked);
}

std::map<std::string, Adjoint> pull_back(const Expression& expression, Environment& environment,
                                         const Adjoint& adjoint,
                                         const std::vector<std::string>& tracked) {
  Reverse reverse(environment, tracked);
  const auto root =
      ExpressionNodePointer(std::make_shared<const ExpressionNode>(expression.root()));
  reverse.pull(root, adjoint);
  return std::move(reverse.result);
}

}  // namespace lockstep
