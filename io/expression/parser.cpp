#include "io/expression/parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "io/expression/lexer.hpp"

namespace lockstep {

namespace {

using Node = ExpressionNode;

enum class Level { disjunction, conjunction, negation, comparison, sum, product, sign, power };

struct Infix {
  std::string_view text;
  Operator operation;
  Level level;
};

constexpr std::array<Infix, 15> infixes{{
    {"or", Operator::logical_or, Level::disjunction},
    {"and", Operator::logical_and, Level::conjunction},
    {"==", Operator::equal, Level::comparison},
    {"!=", Operator::not_equal, Level::comparison},
    {"<", Operator::less, Level::comparison},
    {"<=", Operator::less_equal, Level::comparison},
    {">", Operator::greater, Level::comparison},
    {">=", Operator::greater_equal, Level::comparison},
    {"+", Operator::add, Level::sum},
    {"-", Operator::subtract, Level::sum},
    {"*", Operator::multiply, Level::product},
    {"/", Operator::divide, Level::product},
    {"//", Operator::floor_divide, Level::product},
    {"%", Operator::modulo, Level::product},
    {"**", Operator::power, Level::power},
}};

const Infix* infix_of(const Token& token) {
  if (token.kind == Token::Kind::value || token.kind == Token::Kind::end) {
    return nullptr;
  }
  for (const Infix& infix : infixes) {
    if (infix.text == token.text) {
      return &infix;
    }
  }
  return nullptr;
}

Level above(Level level) { return static_cast<Level>(static_cast<int>(level) + 1); }

bool begins_operand(const Token& token) {
  switch (token.kind) {
    case Token::Kind::value: return true;
    case Token::Kind::name: return token.text != "and" && token.text != "or";
    case Token::Kind::symbol:
      return token.text == "(" || token.text == "[" || token.text == "-" || token.text == "+";
    case Token::Kind::end: return false;
  }
  return false;
}

bool is_keyword(std::string_view word) { return word == "and" || word == "or" || word == "not"; }

/// Pratt's top-down operator precedence. The first error is thrown and ends the parse.
class Parser {
 public:
  Parser(const std::vector<Token>& tokens, const SourcePlace& place)
      : tokens_(tokens), place_(place) {}
  ExpressionNodePointer whole();

 private:
  const Token& next() const { return tokens_[position_]; }
  bool at_symbol(std::string_view text) const {
    return next().kind == Token::Kind::symbol && next().text == text;
  }
  const Token& take() { return tokens_[position_++]; }
  [[noreturn]] void fail(const Token& token, std::string message, std::string remedy = "") const {
    throw SyntaxError{place_at(place_, token.offset), std::move(message), std::move(remedy)};
  }
  std::string described(const Token& token) const;
  void expect(std::string_view symbol, const Token& opened);
  ExpressionNodePointer node(const Token& token, Node node) const;

  ExpressionNodePointer expression(Level least);
  ExpressionNodePointer infix(ExpressionNodePointer left, const Infix& infix);
  ExpressionNodePointer prefix(Level least);
  ExpressionNodePointer word(const Token& token);
  ExpressionNodePointer postfix(ExpressionNodePointer of);
  std::vector<ExpressionNodePointer> items(std::string_view closing, const Token& opened);

  const std::vector<Token>& tokens_;
  const SourcePlace& place_;
  size_t position_ = 0;
  int nesting_ = 0;
};

std::string Parser::described(const Token& token) const {
  switch (token.kind) {
    case Token::Kind::end: return "the end";
    case Token::Kind::value: return text_of(token.value, 4);
    default: return fmt::format("`{}`", token.text);
  }
}

ExpressionNodePointer Parser::node(const Token& token, Node made) const {
  if (height_above(made.parts) > expression_height_limit) {
    fail(token,
         fmt::format("more than {} operations build on one another", expression_height_limit - 1),
         "split the expression with `let`");
  }
  made.place = place_at(place_, token.offset);
  return make_expression_node(std::move(made));
}

void Parser::expect(std::string_view symbol, const Token& opened) {
  if (!at_symbol(symbol)) {
    fail(next(), fmt::format("expected `{}` here, found {}", symbol, described(next())),
         opened.text.empty()
             ? ""
             : fmt::format("it closes the `{}` at character {}", opened.text, opened.offset + 1));
  }
  take();
}

ExpressionNodePointer Parser::whole() {
  if (next().kind == Token::Kind::end) {
    fail(next(), "the expression is empty");
  }
  ExpressionNodePointer root = expression(Level::disjunction);
  const Token& token = next();
  if (token.kind == Token::Kind::end) {
    return root;
  }
  if (at_symbol(",")) {
    fail(token, "a comma is allowed only in brackets", "write a list: [a, b]");
  }
  if (at_symbol(")") || at_symbol("]")) {
    fail(token, fmt::format("`{}` has no matching opening bracket", token.text));
  }
  if (token.kind == Token::Kind::name && (token.text == "if" || token.text == "else")) {
    fail(token, "there are no conditional expressions",
         "in arithmetic a bool is 0 or 1: a * (c) + b * (not c)");
  }
  fail(token, fmt::format("expected an operator or the end, found {}", described(token)));
}

ExpressionNodePointer Parser::expression(Level least) {
  if (++nesting_ > expression_nesting_limit) {
    fail(next(), fmt::format("nested more than {} deep", expression_nesting_limit),
         "split the expression with `let`");
  }
  ExpressionNodePointer left = prefix(least);
  while (const Infix* found = infix_of(next())) {
    if (found->level < least) {
      break;
    }
    left = infix(std::move(left), *found);
  }
  --nesting_;
  return left;
}

ExpressionNodePointer Parser::infix(ExpressionNodePointer left, const Infix& infix) {
  const Token& token = take();
  // `**` groups to the right, and its right operand may have a sign: 2 ** -1.
  const Level right_level = infix.level == Level::power ? Level::sign : above(infix.level);
  if (infix.operation == Operator::modulo && !begins_operand(next())) {
    fail(token, "a percentage is not allowed inside an expression", "write the fraction: 0.1");
  }
  ExpressionNodePointer right = expression(right_level);
  ExpressionNodePointer result = node(token, {.kind = Node::Kind::binary,
                                              .operation = infix.operation,
                                              .parts = {std::move(left), std::move(right)}});
  const Infix* following = infix_of(next());
  if (infix.level == Level::comparison && following != nullptr &&
      following->level == Level::comparison) {
    fail(next(), "comparisons do not chain", "write a < b and b < c");
  }
  return result;
}

ExpressionNodePointer Parser::prefix(Level least) {
  const Token& token = take();
  if (token.kind == Token::Kind::value) {
    return postfix(node(token, {.kind = Node::Kind::constant, .value = token.value}));
  }
  if (token.kind == Token::Kind::name) {
    if (token.text == "not") {
      if (least > Level::negation) {
        fail(token, "`not` binds less than the operator before it", "write (not x)");
      }
      return node(token, {.kind = Node::Kind::unary,
                          .operation = Operator::logical_not,
                          .parts = {expression(Level::negation)}});
    }
    return word(token);
  }
  if (token.kind == Token::Kind::symbol && token.text == "-") {
    return node(token, {.kind = Node::Kind::unary,
                        .operation = Operator::negate,
                        .parts = {expression(Level::sign)}});
  }
  if (token.kind == Token::Kind::symbol && token.text == "(") {
    ExpressionNodePointer inner = expression(Level::disjunction);
    if (at_symbol(",")) {
      fail(next(), "there are no tuples", "write a list: [a, b]");
    }
    expect(")", token);
    return postfix(std::move(inner));
  }
  if (token.kind == Token::Kind::symbol && token.text == "[") {
    return postfix(node(token, {.kind = Node::Kind::list, .parts = items("]", token)}));
  }
  fail(token, fmt::format("expected a value, found {}", described(token)),
       token.text == "+" ? "drop the sign: there is no unary +" : "");
}

// `name` is what stands before the parentheses: "loss.item".
std::string remedy_for_method(std::string_view name) {
  constexpr auto without_effect = std::to_array<std::string_view>(
      {"item", "detach", "cpu", "cuda", "clone", "float", "contiguous", "to", "tolist", "numpy"});
  const size_t dot = name.rfind('.');
  const std::string_view object = name.substr(0, dot);
  const std::string_view method = name.substr(dot + 1);
  const bool same =
      std::find(without_effect.begin(), without_effect.end(), method) != without_effect.end();
  constexpr auto modules = std::to_array<std::string_view>({"torch", "np", "numpy", "math", "F"});
  const bool of_module = std::find(modules.begin(), modules.end(), object) != modules.end();
  return same ? fmt::format("write `{}`: its value is the same here", object)
              : fmt::format("write {}({})", method, of_module ? ".." : object);
}

ExpressionNodePointer Parser::word(const Token& token) {
  if (is_keyword(token.text)) {
    fail(token, fmt::format("expected a value, found `{}`", token.text));
  }
  if (at_symbol("(")) {
    if (token.text.find('.') != std::string::npos) {
      fail(token, fmt::format("`{}` is not a function: functions have no dots", token.text),
           remedy_for_method(token.text));
    }
    const Token& opened = take();
    return postfix(
        node(token, {.kind = Node::Kind::call, .name = token.text, .parts = items(")", opened)}));
  }
  if (token.text == "inf" || token.text == "nan") {
    using Limits = std::numeric_limits<double>;
    const double value = token.text == "inf" ? Limits::infinity() : Limits::quiet_NaN();
    return node(token, {.kind = Node::Kind::constant, .value = Value(value)});
  }
  if (token.text == "unknown") {
    return node(token, {.kind = Node::Kind::unknown});
  }
  return postfix(node(token, {.kind = Node::Kind::name, .name = token.text}));
}

ExpressionNodePointer Parser::postfix(ExpressionNodePointer of) {
  while (at_symbol("[") || at_symbol("(")) {
    const Token& opened = take();
    if (opened.text == "(") {
      fail(opened, "only a function can be called", "write the operator: a * (b)");
    }
    ExpressionNodePointer index = expression(Level::disjunction);
    expect("]", opened);
    of = node(opened, {.kind = Node::Kind::index, .parts = {std::move(of), std::move(index)}});
  }
  return of;
}

std::vector<ExpressionNodePointer> Parser::items(std::string_view closing, const Token& opened) {
  std::vector<ExpressionNodePointer> found;
  while (!at_symbol(closing)) {
    found.push_back(expression(Level::disjunction));
    if (!at_symbol(",")) {
      break;
    }
    take();
  }
  expect(closing, opened);
  return found;
}

}  // namespace

ParsedExpression parse_expression(std::string_view text, SourcePlace place, TooLarge too_large) {
  if (text.size() > expression_size_limit) {
    return std::vector<SyntaxError>{{place,
                                     fmt::format("the expression has {} bytes; the limit is {}",
                                                 text.size(), expression_size_limit),
                                     "split it with `let`, or use full, arange and range"}};
  }
  Tokens tokens = tokens_of(text, place, too_large);
  if (!tokens.errors.empty()) {
    return std::move(tokens.errors);
  }
  try {
    return Expression(Parser(tokens.tokens, place).whole(), std::string(text));
  } catch (SyntaxError& error) {
    return std::vector<SyntaxError>{std::move(error)};
  }
}

}  // namespace lockstep
