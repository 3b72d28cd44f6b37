#include "io/scenario/forms/plain.hpp"

#include <fmt/format.h>

#include "io/scenario/reader/scalar.hpp"

namespace lockstep {
namespace {

std::optional<PlainValue> read_scalar(Reader& reader, const Node& node, std::string_view key) {
  PlainValue plain{node.text, reader.place(node)};
  if (node.quoted) {
    return plain;
  }
  if (node.text == "true" || node.text == "false") {
    plain.value = node.text == "true";
    return plain;
  }
  if (const std::string remedy = remedy_for_foreign_word(node.text); !remedy.empty()) {
    reader.fail(node.mark,
                fmt::format("`{}`: `{}` is neither a bool nor a quoted text", key, node.text),
                remedy);
    return std::nullopt;
  }
  const bool number = looks_like_number(node.text) || node.text == "inf" || node.text == "-inf";
  if (!number) {
    return plain;
  }
  const auto integer = parse_int(node.text);
  if (const auto* value = std::get_if<int64_t>(&integer)) {
    plain.value = *value;
    return plain;
  }
  const auto real = parse_float(node.text);
  if (const auto* error = std::get_if<ScalarError>(&real)) {
    reader.fail(node.mark, fmt::format("`{}` {}", key, error->message), error->remedy);
    return std::nullopt;
  }
  plain.value = std::get<double>(real);
  return plain;
}

}  // namespace

std::optional<PlainValue> read_plain(Reader& reader, const Node& node, std::string_view key) {
  switch (node.kind) {
    case Node::Kind::null: return PlainValue{std::monostate{}, reader.place(node)};
    case Node::Kind::scalar: return read_scalar(reader, node, key);
    case Node::Kind::list: {
      PlainValue::List list;
      for (const NodePtr& item : node.items) {
        if (auto value = read_plain(reader, *item, key)) {
          list.push_back(std::move(*value));
        }
      }
      return PlainValue{std::move(list), reader.place(node)};
    }
    case Node::Kind::map: {
      PlainValue::Map map;
      for (const Entry& entry : node.entries) {
        if (auto value = read_plain(reader, *entry.value, entry.key)) {
          map.push_back({entry.key, std::move(*value), reader.place(entry.mark)});
        }
      }
      return PlainValue{std::move(map), reader.place(node)};
    }
  }
  return std::nullopt;
}

}  // namespace lockstep
