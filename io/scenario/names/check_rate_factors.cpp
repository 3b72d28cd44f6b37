#include <fmt/format.h>

#include "io/scenario/names/check_names.hpp"
#include "io/scenario/names/spelling.hpp"
#include "model/expression/function.hpp"

namespace lockstep {
namespace {

bool is_name_of_factor(std::string_view name) { return name == "epoch" || name == "pi"; }

void check_node(Reader& reader, const ExpressionNode& node) {
  if (node.kind == ExpressionNode::Kind::name && !is_name_of_factor(node.name)) {
    reader.fail_at(node.place, fmt::format("`{}` is not defined here", node.name),
                   "a factor sees `epoch`, which counts its scheduler's own steps, and `pi`");
  }
  if (node.kind == ExpressionNode::Kind::call && find_function(node.name) == nullptr) {
    reader.fail_at(node.place, fmt::format("there is no function `{}`", node.name),
                   spelling_remedy(node.name, function_names()));
  }
  for (const ExpressionNodePointer& part : node.parts) {
    check_node(reader, *part);
  }
}

void check_scheduler(Reader& reader, const Object& scheduler) {
  const PlainValue* const factor = scheduler.find("lr_lambda");
  const auto* const expression = factor == nullptr ? nullptr : factor->get_if<Expression>();
  if (expression != nullptr) {
    check_node(reader, expression->root());
  }
  const PlainValue* const held = scheduler.find("schedulers");
  const auto* const list = held == nullptr ? nullptr : held->get_if<PlainValue::List>();
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    if (const auto inner = as_object((*list)[i])) {
      check_scheduler(reader, *inner);
    }
  }
}

}  // namespace

void check_rate_factors(Reader& reader, const Scenario& scenario) {
  for (const Object& scheduler : scenario.schedulers) {
    check_scheduler(reader, scheduler);
  }
}

}  // namespace lockstep
