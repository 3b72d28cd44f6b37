#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/expression/source.hpp"
#include "model/expression/value.hpp"

namespace lockstep {

enum class Operator : uint8_t {
  logical_or,
  logical_and,
  logical_not,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  negate,
  power,
};
/// As it is written: "or", "==", "//"; `negate` is "-".
std::string_view name_of(Operator operation);
constexpr bool is_comparison(Operator operation) {
  return operation >= Operator::equal && operation <= Operator::greater_equal;
}

struct ExpressionNode;
using ExpressionNodePointer = std::shared_ptr<const ExpressionNode>;

/// One part of an expression. `place` is where an error about it points: the operator of a unary
/// or binary part, the bracket of an index, else the first character.
struct ExpressionNode {
  enum class Kind : uint8_t { constant, name, unknown, list, unary, binary, call, index };
  Kind kind = Kind::constant;
  SourcePlace place{};
  Value value{};                               ///< constant
  std::string name{};                          ///< name, call
  Operator operation = Operator::add;          ///< unary, binary
  std::vector<ExpressionNodePointer> parts{};  ///< operands, items, arguments; index: of what, i
  int height = 1;                              ///< longest way down, itself included; see below
};

/// Evaluation goes down by recursion, so no expression is higher than this.
inline constexpr int expression_height_limit = 1000;
/// Sets the height from the parts; it must be within the limit.
ExpressionNodePointer make_expression_node(ExpressionNode node);
/// Returns the height of a node with these parts.
int height_above(const std::vector<ExpressionNodePointer>& parts);

/// An immutable expression of a scenario; copies share the tree.
class Expression {
 public:
  /// The constant null.
  Expression();
  Expression(ExpressionNodePointer root, std::string text);
  static Expression constant(Value value, SourcePlace place = {});

  const ExpressionNode& root() const { return *content_->root; }
  const SourcePlace& place() const { return root().place; }
  const std::string& text() const { return content_->text; }

  /// Names that the environment must bind, in order of first use; `self.NAME` and other dotted
  /// names as one.
  const std::vector<std::string>& names() const { return content_->names; }
  /// Functions that are called, built-in ones included, in order of first use.
  const std::vector<std::string>& functions() const { return content_->functions; }
  bool uses_random() const { return content_->uses_random; }
  bool uses_unknown() const { return content_->uses_unknown; }
  /// Needs no environment: the same value on every rank at any time.
  bool is_constant() const { return content_->is_constant; }

 private:
  struct Content {
    ExpressionNodePointer root;
    std::string text;
    std::vector<std::string> names{};
    std::vector<std::string> functions{};
    bool uses_random = false;
    bool uses_unknown = false;
    bool is_constant = true;
  };
  static void collect(const ExpressionNode& node, Content& content);
  std::shared_ptr<const Content> content_;
};

}  // namespace lockstep
