#pragma once

#include <string>

#include "model/expression/evaluate.hpp"
#include "model/user_program/module_names.hpp"

namespace lockstep {

/// The function of expressions that reads a parameter of the model.
inline constexpr std::string_view parameter_function = "parameter";

/// Records how values follow from the loss and the output of forwards, as autograd does, for the
/// statements of one rank. The way back is BackwardWalk.
class GradientTape {
 public:
  using NamedValues = std::map<std::string, Value, std::less<>>;

  /// `names` outlive the tape.
  explicit GradientTape(ModuleNames& names) : names_(names) {}

  /// Starts a new batch: nothing is recorded across its beginning.
  void begin_graph() { ++graph_; }
  /// The loss of a forward, or its output of so many elements, from which gradients flow.
  GradientPointer new_result_of_forward(int64_t elements, int64_t forward, bool is_output);
  /// A node without inputs, to be given some by add_input.
  std::shared_ptr<GradientNode> new_node(GradientNode::Kind kind, SiteId site);
  void add_input(GradientNode& node, const std::string& name, GradientPointer input);
  /// Whether a gradient flows through the value of an expression.
  bool flows_through(const Expression& expression, Frame& frame);
  /// Records an expression that has a value of so many elements; `values` are those of its names.
  GradientPointer record(const Expression& expression, int64_t elements, Frame& frame, SiteId site,
                         NamedValues values);

 private:
  GradientPointer of_list(const Variable::List& items, const List& values);
  bool is_tracked(std::string_view name, Frame& frame);

  ModuleNames& names_;
  int64_t graph_ = 0;
  int64_t nodes_ = 0;  ///< that have been made, for their order
};

/// An expression that is one name.
ExpressionNodePointer expression_of_name(const std::string& name);

}  // namespace lockstep
