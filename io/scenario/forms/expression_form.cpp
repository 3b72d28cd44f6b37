#include <fmt/format.h>

#include "io/expression/parser.hpp"
#include "io/scenario/forms/format.hpp"
#include "io/scenario/reader/text.hpp"

namespace lockstep {
namespace {

std::optional<Expression> parse(Reader& reader, const std::string& text, SourcePlace place) {
  ParsedExpression parsed = parse_expression(text, std::move(place));
  if (auto* errors = std::get_if<std::vector<SyntaxError>>(&parsed)) {
    for (const SyntaxError& error : *errors) {
      reader.fail_at(error.place, error.message, error.remedy);
    }
    return std::nullopt;
  }
  return std::get<Expression>(std::move(parsed));
}

/// YAML has already read `[a, b]` as a list: each item keeps its own place.
std::optional<Expression> read_list(Reader& reader, const Node& node, const KeyRow& row) {
  ExpressionNode list{ExpressionNode::Kind::list, reader.place(node)};
  std::string text = "[";
  for (const NodePtr& item : node.items) {
    const auto part = ExpressionForm::read(reader, *item, row);
    if (!part) {
      return std::nullopt;
    }
    list.parts.push_back(std::make_shared<const ExpressionNode>(part->root()));
    text += (text.size() > 1 ? ", " : "") + part->text();
  }
  return Expression(make_expression_node(std::move(list)), text + "]");
}

}  // namespace

std::optional<Expression> ExpressionForm::read(Reader& reader, const Node& node,
                                               const KeyRow& row) {
  if (node.kind == Node::Kind::list) {
    return read_list(reader, node, row);
  }
  if (node.kind != Node::Kind::scalar) {
    reader.fail_type(node, row.key, "an expression",
                     "quote this expression: YAML reads its braces as a map");
    return std::nullopt;
  }
  return parse(reader, node.text, text_place(reader, node));
}

std::optional<TextPattern> PatternForm::read(Reader& reader, const Node& node, const KeyRow& row) {
  const std::optional<std::string> text = TextForm::read(reader, node, row);
  if (!text) {
    return std::nullopt;
  }
  TextPattern pattern{*text, {}, {}};
  size_t at = 0;
  for (size_t open = text->find('{'); open != std::string::npos; open = text->find('{', at)) {
    const size_t close = text->find('}', open);
    if (close == std::string::npos) {
      reader.fail_at(text_place(reader, node), fmt::format("`{}` has no closing brace", row.key),
                     "write an expression in braces, such as \"layer.{i}\"");
      return std::nullopt;
    }
    SourcePlace place = text_place(reader, node);
    place.column += static_cast<int>(open) + 1;
    std::optional<Expression> value =
        parse(reader, text->substr(open + 1, close - open - 1), place);
    if (!value) {
      return std::nullopt;
    }
    pattern.words.push_back(text->substr(at, open - at));
    pattern.values.push_back(*std::move(value));
    at = close + 1;
  }
  pattern.words.push_back(text->substr(at));
  return pattern;
}

}  // namespace lockstep
