#include "rehearsal/findings/origin_of_call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "model/metric/functional.hpp"

namespace lockstep::cli {

namespace {

// The object with the arguments of the function.
void declare(const ExpressionNode& node, Origin& origin) {
  origin.declaration = origin.class_name;
  const std::vector<std::string_view> names = metric_arguments_of(node.name);
  std::vector<std::string> arguments;
  const size_t given = node.parts.size() < 2 ? 0 : node.parts.size() - 2;
  for (size_t i = 0; i < std::min(given, names.size()); ++i) {
    const ExpressionNode& part = *node.parts[i + 2];
    const bool is_constant = part.kind == ExpressionNode::Kind::constant;
    arguments.push_back(
        fmt::format("{}: {}", names[i], is_constant ? text_of(part.value) : std::string("..")));
    if (names[i] == "squared" && is_constant && part.value == Value(false)) {
      origin.class_name = "RootMeanSquaredError";
    }
  }
  if (!arguments.empty()) {
    origin.declaration =
        fmt::format("{{{}: {{{}}}}}", origin.declaration, fmt::join(arguments, ", "));
  }
  if (given + 2 > node.parts.size()) {
    return;
  }
  const auto name_of = [&node](size_t part) {
    return node.parts[part]->kind == ExpressionNode::Kind::name ? node.parts[part]->name : "..";
  };
  if (name_of(0) != "score" || name_of(1) != "target") {
    origin.update = fmt::format("{{metric: m, preds: {}, target: {}}}", name_of(0), name_of(1));
  }
}

}  // namespace

void note_call(const ExpressionNode& node, Origin& origin) {
  origin.is_mean = origin.is_mean || node.name == "mean";
  if (!origin.class_name.empty()) {
    return;
  }
  origin.class_name = node.name == "sqrt" ? "RootMeanSquaredError" : metric_class_of(node.name);
  if (node.name == "exp" || node.name == "log") {
    origin.class_name = node.name;
  }
  declare(node, origin);
  for (const ExpressionNodePointer& part : node.parts) {
    const bool is_text =
        part->kind == ExpressionNode::Kind::constant && part->value.is(Value::Kind::text);
    origin.is_micro = origin.is_micro || (is_text && part->value.text() == "micro");
  }
}

}  // namespace lockstep::cli
