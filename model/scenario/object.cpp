#include "model/scenario/object.hpp"

#include <fmt/format.h>

namespace lockstep {
namespace {

std::string last_part(const std::string& class_path) {
  const size_t dot = class_path.rfind('.');
  return dot == std::string::npos ? class_path : class_path.substr(dot + 1);
}

std::vector<ObjectArgument> arguments_of(const PlainValue& value) {
  std::vector<ObjectArgument> arguments;
  if (const auto* map = value.get_if<PlainValue::Map>()) {
    for (const PlainEntry& entry : *map) {
      arguments.push_back({entry.key, entry.value, entry.value.place});
    }
  } else if (const auto* list = value.get_if<PlainValue::List>()) {
    for (const PlainValue& item : *list) {
      arguments.push_back({"", item, item.place});
    }
  } else if (!value.is_null()) {
    arguments.push_back({"", value, value.place});
  }
  return arguments;
}

const PlainValue* find_key(const PlainValue::Map& map, std::string_view key) {
  for (const PlainEntry& entry : map) {
    if (entry.key == key) {
      return &entry.value;
    }
  }
  return nullptr;
}

}  // namespace

std::optional<double> PlainValue::number() const {
  if (const auto* integer = get_if<int64_t>()) {
    return static_cast<double>(*integer);
  }
  if (const auto* real = get_if<double>()) {
    return *real;
  }
  return std::nullopt;
}

std::string text_of(const PlainValue& value) {
  struct Writer {
    std::string operator()(std::monostate) const { return "null"; }
    std::string operator()(bool truth) const { return truth ? "true" : "false"; }
    std::string operator()(int64_t integer) const { return std::to_string(integer); }
    std::string operator()(double real) const { return fmt::format("{}", real); }
    std::string operator()(const std::string& text) const { return text; }
    std::string operator()(const PlainValue::List& list) const {
      std::string out = "[";
      for (const PlainValue& item : list) {
        out += (out.size() > 1 ? ", " : "") + text_of(item);
      }
      return out + "]";
    }
    std::string operator()(const PlainValue::Map& map) const {
      std::string out = "{";
      for (const PlainEntry& entry : map) {
        out += (out.size() > 1 ? ", " : "") + entry.key + ": " + text_of(entry.value);
      }
      return out + "}";
    }
    std::string operator()(const Expression& expression) const { return expression.text(); }
  };
  return std::visit(Writer{}, value.value);
}

const PlainValue* Object::find(std::string_view argument) const {
  for (const ObjectArgument& candidate : arguments) {
    if (candidate.name == argument) {
      return &candidate.value;
    }
  }
  return nullptr;
}

const PlainValue* Object::find(std::string_view argument, size_t position) const {
  if (const PlainValue* named = find(argument)) {
    return named;
  }
  if (position < arguments.size() && arguments[position].name.empty()) {
    return &arguments[position].value;
  }
  return nullptr;
}

std::optional<Object> as_object(const PlainValue& value) {
  if (const auto* name = value.get_if<std::string>()) {
    return Object{*name, {}, value.place};
  }
  const auto* map = value.get_if<PlainValue::Map>();
  if (map == nullptr || map->empty()) {
    return std::nullopt;
  }
  if (const PlainValue* class_path = find_key(*map, "class_path")) {
    const auto* path = class_path->get_if<std::string>();
    if (path == nullptr) {
      return std::nullopt;
    }
    const PlainValue* arguments = find_key(*map, "init_args");
    return Object{last_part(*path),
                  arguments == nullptr ? std::vector<ObjectArgument>() : arguments_of(*arguments),
                  class_path->place};
  }
  if (map->size() != 1) {
    return std::nullopt;
  }
  return Object{map->front().key, arguments_of(map->front().value), value.place};
}

}  // namespace lockstep
