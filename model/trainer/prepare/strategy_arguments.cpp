#include "model/trainer/prepare/strategy_arguments.hpp"

#include <algorithm>

namespace lockstep {

void set_argument(const std::string& name, const PlainValue& value, StrategyArguments& arguments) {
  if (const bool* truth = value.get_if<bool>()) {
    arguments.set(name, *truth);
  } else if (const int64_t* whole = value.get_if<int64_t>()) {
    arguments.set(name, *whole);
  } else if (const double* number = value.get_if<double>()) {
    arguments.set(name, *number);
  } else if (const std::string* text = value.get_if<std::string>()) {
    arguments.set(name, *text);
  } else if (const PlainValue::List* list = value.get_if<PlainValue::List>()) {
    std::vector<std::string> texts;
    for (const PlainValue& each : *list) {
      texts.push_back(text_of(each));
    }
    arguments.set(name, std::move(texts));
  } else if (const PlainValue::Map* map = value.get_if<PlainValue::Map>()) {
    for (const PlainEntry& entry : *map) {
      set_argument(name + "." + entry.key, entry.value, arguments);
    }
  } else {
    arguments.set(name, std::monostate());
  }
}

StrategyArguments strategy_arguments_of(const Object& strategy) {
  StrategyArguments arguments;
  for (const ObjectArgument& argument : strategy.arguments) {
    set_argument(argument.name, argument.value, arguments);
  }
  return arguments;
}

namespace {

using Changed = std::vector<std::pair<std::string, std::string>>;

std::string text_with(const std::string& name, const PlainValue& value, const Changed& changed) {
  const auto own = std::ranges::find(changed, name, &Changed::value_type::first);
  if (own != changed.end()) {
    return own->second;
  }
  const PlainValue::Map* map = value.get_if<PlainValue::Map>();
  if (map == nullptr) {
    return text_of(value);
  }
  std::string text;
  for (const PlainEntry& entry : *map) {
    text += (text.empty() ? "" : ", ") + entry.key + ": " +
            text_with(name + "." + entry.key, entry.value, changed);
  }
  return "{" + text + "}";
}

}  // namespace

std::string text_with(const Object& strategy, const Changed& changed) {
  std::string text;
  for (const ObjectArgument& argument : strategy.arguments) {
    text += (text.empty() ? "" : ", ") + argument.name + ": " +
            text_with(argument.name, argument.value, changed);
  }
  return text.empty() ? strategy.name : "{" + strategy.name + ": {" + text + "}}";
}

}  // namespace lockstep
