#include "model/expression/expression.hpp"

#include <algorithm>

#include "model/core/ensure.hpp"
#include "model/expression/function.hpp"

namespace lockstep {

std::string_view name_of(Operator operation) {
  switch (operation) {
    case Operator::logical_or: return "or";
    case Operator::logical_and: return "and";
    case Operator::logical_not: return "not";
    case Operator::equal: return "==";
    case Operator::not_equal: return "!=";
    case Operator::less: return "<";
    case Operator::less_equal: return "<=";
    case Operator::greater: return ">";
    case Operator::greater_equal: return ">=";
    case Operator::add: return "+";
    case Operator::subtract:
    case Operator::negate: return "-";
    case Operator::multiply: return "*";
    case Operator::divide: return "/";
    case Operator::floor_divide: return "//";
    case Operator::modulo: return "%";
    case Operator::power: return "**";
  }
  return "?";
}

int height_above(const std::vector<ExpressionNodePointer>& parts) {
  int height = 0;
  for (const ExpressionNodePointer& part : parts) {
    height = std::max(height, part->height);
  }
  return height + 1;
}

ExpressionNodePointer make_expression_node(ExpressionNode node) {
  node.height = height_above(node.parts);
  ensure(node.height <= expression_height_limit, "an expression's height is bounded");
  return std::make_shared<const ExpressionNode>(std::move(node));
}

namespace {

void add_once(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    names.push_back(name);
  }
}

}  // namespace

void Expression::collect(const ExpressionNode& node, Content& content) {
  switch (node.kind) {
    case ExpressionNode::Kind::name:
      add_once(content.names, node.name);
      content.is_constant = false;
      break;
    case ExpressionNode::Kind::unknown:
      content.uses_unknown = true;
      content.is_constant = false;
      break;
    case ExpressionNode::Kind::call:
      add_once(content.functions, node.name);
      content.uses_random = content.uses_random || node.name == "random";
      content.is_constant =
          content.is_constant && find_function(node.name) != nullptr && node.name != "random";
      break;
    default: break;
  }
  for (const ExpressionNodePointer& part : node.parts) {
    collect(*part, content);
  }
}

Expression::Expression() : Expression(constant(Value())) {}

Expression::Expression(ExpressionNodePointer root, std::string text) {
  Content content{.root = std::move(root), .text = std::move(text)};
  collect(*content.root, content);
  content_ = std::make_shared<const Content>(std::move(content));
}

Expression Expression::constant(Value value, SourcePlace place) {
  std::string text = text_of(value);
  return Expression(make_expression_node({.place = std::move(place), .value = std::move(value)}),
                    std::move(text));
}

}  // namespace lockstep
