#include "model/user_program/gradient_tape.hpp"

#include <algorithm>

#include "model/expression/differentiate.hpp"

namespace lockstep {

namespace {

using NodeKind = GradientNode::Kind;

bool holds_gradient(const Variable& variable) {
  if (const auto* list = std::get_if<Variable::List>(&variable.content)) {
    return std::ranges::any_of(*list, holds_gradient);
  }
  return variable.gradient != nullptr;
}

}  // namespace

ExpressionNodePointer expression_of_name(const std::string& name) {
  ExpressionNode node;
  node.kind = ExpressionNode::Kind::name;
  node.name = name;
  return make_expression_node(std::move(node));
}

GradientNode::~GradientNode() {
  std::vector<GradientPointer> open;
  const auto take = [&open](GradientNode& node) {
    for (auto& [name, input] : node.inputs) {
      open.push_back(std::move(input));
    }
    node.inputs.clear();
  };
  take(*this);
  while (!open.empty()) {
    const GradientPointer last = std::move(open.back());
    open.pop_back();
    if (last.use_count() == 1) {
      take(const_cast<GradientNode&>(*last));  // nobody else sees it any more
    }
  }
}

std::shared_ptr<GradientNode> GradientTape::new_node(NodeKind kind, SiteId site) {
  auto node = std::make_shared<GradientNode>();
  node->kind = kind;
  node->number = nodes_++;
  node->graph = graph_;
  node->site = site;
  return node;
}

GradientPointer GradientTape::new_result_of_forward(int64_t elements, int64_t forward,
                                                    bool is_output) {
  const std::shared_ptr<GradientNode> node = new_node(NodeKind::forward, no_site);
  node->elements = elements;
  node->forward = forward;
  node->is_output = is_output;
  return node;
}

void GradientTape::add_input(GradientNode& node, const std::string& name, GradientPointer input) {
  if (input->graph == graph_) {
    node.reaches_earlier_graph = node.reaches_earlier_graph || input->reaches_earlier_graph;
    node.inputs.emplace(name, std::move(input));
  } else {
    node.reaches_earlier_graph = true;  // not kept: a sum over batches would keep them all
  }
}

// A list is what an expression that lists its items gives.
GradientPointer GradientTape::of_list(const Variable::List& items, const List& values) {
  const std::shared_ptr<GradientNode> node = new_node(NodeKind::expression, no_site);
  ExpressionNode list;
  list.kind = ExpressionNode::Kind::list;
  for (size_t index = 0; index < items.size(); ++index) {
    const std::string name = std::to_string(index);
    list.parts.push_back(expression_of_name(name));
    node->values.emplace(name, values[index]);
    if (const auto* inner = std::get_if<Variable::List>(&items[index].content)) {
      if (holds_gradient(items[index])) {
        add_input(*node, name, of_list(*inner, values[index].list()));
      }
    } else if (items[index].gradient) {
      add_input(*node, name, items[index].gradient);
    }
  }
  node->expression = Expression(make_expression_node(std::move(list)), "a list");
  node->number = nodes_++;  // after the lists within it
  return node;
}

bool GradientTape::is_tracked(std::string_view name, Frame& frame) {
  const Variable* variable = names_.find(name, frame);
  return variable != nullptr && holds_gradient(*variable);
}

namespace {

bool reads_parameters(const Expression& expression) {
  return std::ranges::count(expression.functions(), parameter_function) != 0;
}

}  // namespace

bool GradientTape::flows_through(const Expression& expression, Frame& frame) {
  const auto tracked = [&](std::string_view name) { return is_tracked(name, frame); };
  return reads_parameters(expression) || (std::ranges::any_of(expression.names(), tracked) &&
                                          is_differentiable_in(expression, tracked));
}

GradientPointer GradientTape::record(const Expression& expression, int64_t elements, Frame& frame,
                                     SiteId site, NamedValues values) {
  const std::shared_ptr<GradientNode> node = new_node(NodeKind::expression, site);
  node->expression = expression;
  node->elements = elements;
  node->through_parameters = reads_parameters(expression);
  node->values = std::move(values);
  for (const std::string& name : expression.names()) {
    if (!is_tracked(name, frame)) {
      continue;
    }
    const Variable& variable = *names_.find(name, frame);
    const auto* list = std::get_if<Variable::List>(&variable.content);
    add_input(*node, name,
              list == nullptr ? variable.gradient
                              : of_list(*list, node->values.find(name)->second.list()));
  }
  node->number = nodes_++;  // after its lists
  return node;
}

}  // namespace lockstep
