#include "io/scenario/forms/object_form.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "io/scenario/classes/other_classes.hpp"
#include "io/scenario/forms/plain.hpp"
#include "io/scenario/names/layout_keys.hpp"
#include "io/scenario/names/spelling.hpp"
#include "model/trainer/framework/strategy_names.hpp"

namespace lockstep {
namespace {

std::string last_part(const std::string& class_path) {
  const size_t dot = class_path.rfind('.');
  return dot == std::string::npos ? class_path : class_path.substr(dot + 1);
}

std::optional<ObjectNode> take_class_path(Reader& reader, const Node& node, const Entry& path) {
  const Node* arguments = nullptr;
  for (const Entry& entry : node.entries) {
    if (entry.key == "init_args") {
      arguments = entry.value->kind == Node::Kind::null ? nullptr : entry.value.get();
    } else if (entry.key != "class_path" && entry.key != "dict_kwargs") {
      reader.fail(entry.mark, fmt::format("beside `class_path` there is no key `{}`", entry.key),
                  spelling_remedy(entry.key, {"init_args"}));
    }
  }
  if (path.value->kind != Node::Kind::scalar) {
    reader.fail_type(*path.value, "class_path", "a dotted name");
    return std::nullopt;
  }
  return ObjectNode{last_part(path.value->text), path.value->mark, arguments};
}

/// Null is legal for every argument, and an int is a float.
bool has_type(const PlainValue& value, std::string_view type) {
  // Ranks may be given different ones: {on_ranks: [1], value: .., otherwise: ..}.
  const PlainValue::Map* map = value.get_if<PlainValue::Map>();
  if (map != nullptr && std::ranges::count(*map, "on_ranks", &PlainEntry::key) != 0) {
    return std::ranges::all_of(*map, [type](const PlainEntry& entry) {
      return entry.key == "on_ranks" || has_type(entry.value, type);
    });
  }
  if (type.empty() || type == "each" || type == "expression" || type == "schedulers" ||
      value.is_null()) {
    return true;
  }
  if (type == "int") {
    return value.get_if<int64_t>() != nullptr;
  }
  if (type == "float") {
    return value.number().has_value();
  }
  if (type == "bool") {
    return value.get_if<bool>() != nullptr;
  }
  if (type == "list") {
    return value.get_if<PlainValue::List>() != nullptr;
  }
  if (type == "map") {
    return value.get_if<PlainValue::Map>() != nullptr;
  }
  return value.get_if<std::string>() != nullptr || value.get_if<int64_t>() != nullptr;
}

/// A function of Python: torch takes a list of them, too, with one for each group of parameters.
std::optional<PlainValue> read_function(Reader& reader, const Node& node, const ArgumentRow& row) {
  if (node.kind == Node::Kind::null) {
    return PlainValue{std::monostate{}, reader.place(node)};
  }
  if (node.kind == Node::Kind::list && node.items.size() == 1) {
    return read_function(reader, *node.items.front(), row);
  }
  if (node.kind == Node::Kind::list) {
    reader.fail(node.mark,
                fmt::format("ValueError: Expected 1 {}s, but got {}", row.name, node.items.size()),
                "an optimizer of a scenario has one group of parameters: write one expression");
    return std::nullopt;
  }
  if (node.text.starts_with("lambda ")) {
    reader.fail(node.mark, fmt::format("`{}` is an expression, without `lambda`", row.name),
                "write what stands behind its colon, of `epoch`: 0.95 ** epoch");
    return std::nullopt;
  }
  const auto expression = ExpressionForm::read(reader, node, {row.name, "", ""});
  return expression ? std::optional(PlainValue{*expression, reader.place(node)}) : std::nullopt;
}

/// As `as_object` takes them apart again.
std::optional<PlainValue> read_schedulers(Reader& reader, const Node& node,
                                          const ArgumentRow& row) {
  if (node.kind != Node::Kind::list) {
    reader.fail_type(node, row.name, "a list of objects",
                     "write [{LinearLR: {..}}, {StepLR: {..}}]");
    return std::nullopt;
  }
  PlainValue::List list;
  for (const NodePtr& item : node.items) {
    const auto object = read_object(reader, *item, row.name, ObjectRole::lr_scheduler);
    if (!object) {
      return std::nullopt;
    }
    PlainValue::Map arguments;
    for (const ObjectArgument& argument : object->arguments) {
      arguments.push_back({argument.name, {argument.value.value, argument.place}});
    }
    PlainValue named{PlainValue::Map{{object->name, {std::move(arguments), object->place}}},
                     object->place};
    list.push_back(std::move(named));
  }
  return PlainValue{std::move(list), reader.place(node)};
}

std::optional<PlainValue> read_value(Reader& reader, const Node& node, const ArgumentRow& row) {
  return row.type == "expression"   ? read_function(reader, node, row)
         : row.type == "schedulers" ? read_schedulers(reader, node, row)
                                    : read_plain(reader, node, row.name);
}

void read_argument(Reader& reader, const Node& node, const ArgumentRow& row,
                   std::string_view class_name, std::vector<ObjectArgument>& arguments) {
  auto value = read_value(reader, node, row);
  if (!value) {
    return;
  }
  if (!has_type(*value, row.type)) {
    reader.fail_type(node, fmt::format("{}.{}", class_name, row.name),
                     fmt::format("{} {}", row.type == "int" ? "an" : "a", row.type));
    return;
  }
  arguments.push_back({std::string(row.name), std::move(*value), reader.place(node)});
}

// The class behind a short name of Lightning's registry: ddp_spawn is DDPSpawnStrategy.
const ClassRow* class_behind(std::string_view short_name) {
  const auto plain = [](std::string_view name) {
    std::string text;
    for (const char letter : name) {
      if (letter != '_') {
        text += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
      }
    }
    return text;
  };
  for (const ClassRow& row : classes(ObjectRole::strategy)) {
    if (plain(row.name) == plain(short_name) + "strategy") {
      return &row;
    }
  }
  return nullptr;
}

std::string no_arguments_remedy(std::string_view name, const std::string& argument) {
  const ClassRow* row = class_behind(name);
  if (row == nullptr) {
    return fmt::format("`{}` takes no arguments", name);
  }
  return fmt::format("the short name takes no arguments, but the class does: {{{}: {{{}: ..}}}}",
                     row->name, argument);
}

std::string remedy_of_argument(const ClassRow& known, const std::string& argument,
                               const std::vector<std::string_view>& legal) {
  if (legal.empty()) {
    return no_arguments_remedy(known.name, argument);
  }
  const std::string layout =
      known.of_strategy.empty() ? "" : layout_key_remedy(known.name, argument, legal);
  return layout.empty() ? spelling_remedy(argument, legal) : layout;
}

// `{type: AdamW, lr: 1e-3}`, as other formats write it, and `{AdamW: .., lr: ..}`.
std::string arguments_remedy(const Node& node) {
  const Entry& first = node.entries[0];
  const Entry& second = node.entries[1];
  const bool names_class =
      first.value->kind == Node::Kind::scalar && (first.key == "type" || first.key == "name" ||
                                                  first.key == "class" || first.key == "_target_");
  const std::string argument = second.value->kind == Node::Kind::scalar ? second.value->text : "..";
  return fmt::format("arguments go inside: {{{}: {{{}: {}}}}}",
                     names_class ? last_part(first.value->text) : first.key, second.key, argument);
}

}  // namespace

std::optional<ObjectNode> take_object(Reader& reader, const Node& node, std::string_view key) {
  if (node.kind == Node::Kind::scalar) {
    return ObjectNode{node.text, node.mark, nullptr};
  }
  if (node.kind != Node::Kind::map || node.entries.empty()) {
    reader.fail_type(node, key, "an object", "write Name or {Name: {argument: value}}");
    return std::nullopt;
  }
  if (const Entry* path = node.find("class_path")) {
    return take_class_path(reader, node, *path);
  }
  if (node.entries.size() > 1) {
    reader.fail(node.entries[1].mark,
                fmt::format("`{}` takes one object, but `{}` was written beside `{}`", key,
                            node.entries[1].key, node.entries[0].key),
                arguments_remedy(node));
    return std::nullopt;
  }
  const Entry& only = node.entries.front();
  return ObjectNode{only.key, only.mark,
                    only.value->kind == Node::Kind::null ? nullptr : only.value.get()};
}

std::vector<ObjectArgument> read_arguments(Reader& reader, const ObjectNode& object,
                                           const ClassRow& known,
                                           const std::vector<std::string_view>& extra) {
  std::vector<ObjectArgument> arguments;
  const std::vector<ArgumentRow> rows = arguments_of(known);
  if (object.arguments == nullptr) {
    return arguments;
  }
  const Node& given = *object.arguments;
  if (given.kind == Node::Kind::list && !rows.empty() && rows.front().type == "each") {
    // Written out in the other way, the first argument is a list itself: [[A, B]].
    const bool nested = given.items.size() == 1 && given.items.front()->kind == Node::Kind::list;
    read_argument(reader, nested ? *given.items.front() : given, rows.front(), known.name,
                  arguments);
    return arguments;
  }
  if (given.kind != Node::Kind::map) {
    const std::vector<const Node*> items = [&] {
      std::vector<const Node*> out;
      for (const NodePtr& item : given.items) {
        out.push_back(item.get());
      }
      return given.kind == Node::Kind::list ? out : std::vector<const Node*>{&given};
    }();
    for (size_t position = 0; position < items.size(); ++position) {
      if (position >= rows.size()) {
        reader.fail(
            items[position]->mark,
            fmt::format("`{}` takes {} arguments, not {}", known.name, rows.size(), items.size()),
            "");
        break;
      }
      read_argument(reader, *items[position], rows[position], known.name, arguments);
    }
    return arguments;
  }
  for (const Entry& entry : given.entries) {
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const ArgumentRow& candidate) {
      return candidate.name == entry.key;
    });
    if (std::find(extra.begin(), extra.end(), entry.key) != extra.end()) {
      continue;
    }
    if (row == rows.end()) {
      std::vector<std::string_view> legal(extra);
      for (const ArgumentRow& candidate : rows) {
        legal.push_back(candidate.name);
      }
      reader.fail(entry.mark, fmt::format("`{}` has no argument `{}`", known.name, entry.key),
                  remedy_of_argument(known, entry.key, legal));
      continue;
    }
    read_argument(reader, *entry.value, *row, known.name, arguments);
  }
  return arguments;
}

void fail_unknown_class(Reader& reader, const ObjectNode& object, ObjectRole role,
                        const std::vector<std::string_view>& more) {
  std::vector<std::string_view> names = known_classes(role);
  names.insert(names.end(), more.begin(), more.end());
  const bool is_near = !nearest_spelling(object.name, names).empty();
  const std::string_view own = remedy_of_own_class(role);
  std::vector<std::string_view> offered = more;
  for (const ClassRow& row : classes(role)) {
    offered.push_back(row.name);
  }
  reader.fail(object.mark, fmt::format("there is no {} `{}`", name_of(role), object.name),
              is_near        ? spelling_remedy(object.name, names)
              : !own.empty() ? std::string(own)
                             : spelling_remedy(object.name, offered));
}

Object other_object(Reader& reader, const ObjectNode& object) {
  Object other{object.name, {}, reader.place(object.mark)};
  if (object.arguments != nullptr && object.arguments->kind == Node::Kind::map) {
    for (const Entry& entry : object.arguments->entries) {
      if (auto value = read_plain(reader, *entry.value, entry.key)) {
        other.arguments.push_back(
            {std::string(entry.key), std::move(*value), reader.place(entry.mark)});
      }
    }
  }
  return other;
}

std::optional<Object> read_object(Reader& reader, const Node& node, std::string_view key,
                                  ObjectRole role) {
  const std::optional<ObjectNode> object = take_object(reader, node, key);
  if (!object) {
    return std::nullopt;
  }
  const ClassRow* known = find_class(role, object->name);
  // Up to Lightning 1.6 a strategy may be a plugin, under a name that its class has no more.
  if (known == nullptr && (role == ObjectRole::strategy || role == ObjectRole::plugin)) {
    known = find_class(ObjectRole::strategy, class_of_today(object->name));
  }
  if (known != nullptr) {
    return Object{object->name, read_arguments(reader, *object, *known),
                  reader.place(object->mark)};
  }
  const bool is_other = is_other_class(role, object->name);
  if (!is_other) {
    fail_unknown_class(reader, *object, role);
  }
  // Of a metric, its name at least is known then.
  return is_other || role == ObjectRole::metric ? std::optional(other_object(reader, *object))
                                                : std::nullopt;
}

}  // namespace lockstep
