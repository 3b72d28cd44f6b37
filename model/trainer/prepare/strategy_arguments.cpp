#include "model/trainer/prepare/strategy_arguments.hpp"

#include <algorithm>
#include <type_traits>

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
    if (map->empty()) {  // it says something nevertheless
      arguments.set(name, std::vector<std::string>());
    }
  } else {
    arguments.set(name, std::monostate());
  }
}

namespace {

const PlainValue* entry_of(const PlainValue::Map& map, std::string_view key) {
  const auto found = std::ranges::find(map, key, &PlainEntry::key);
  return found == map.end() ? nullptr : &found->value;
}

std::vector<int64_t> whole_numbers(const PlainValue& value) {
  std::vector<int64_t> numbers;
  const PlainValue::List* list = value.get_if<PlainValue::List>();
  for (size_t index = 0; list != nullptr && index < list->size(); ++index) {
    if (const int64_t* number = (*list)[index].get_if<int64_t>()) {
      numbers.push_back(*number);
    }
  }
  return list == nullptr || numbers.size() != list->size() ? std::vector<int64_t>() : numbers;
}

}  // namespace

void remove_argument(const std::string& name, StrategyArguments& arguments) {
  const StrategyArguments all = arguments;
  for (const auto& [each, value] : all.all()) {
    if (each == name || each.starts_with(name + ".")) {
      arguments.erase(each);
    }
  }
}

PlainValue value_on_rank(const PlainValue& value, int64_t rank) {
  const PlainValue::Map* map = value.get_if<PlainValue::Map>();
  if (map == nullptr) {
    return value;
  }
  if (const PlainValue* ranks = entry_of(*map, "on_ranks")) {
    const bool is_named = std::ranges::count(whole_numbers(*ranks), rank) != 0;
    const PlainValue* chosen = entry_of(*map, is_named ? "value" : "otherwise");
    return chosen == nullptr ? PlainValue{{}, value.place} : *chosen;
  }
  PlainValue::Map on_rank;
  for (const PlainEntry& entry : *map) {
    on_rank.push_back({entry.key, value_on_rank(entry.value, rank)});
  }
  return PlainValue{std::move(on_rank), value.place};
}

bool add_named_ranks(const PlainValue& value, std::vector<int64_t>& ranks) {
  const PlainValue::Map* map = value.get_if<PlainValue::Map>();
  if (map == nullptr) {
    return true;
  }
  if (const PlainValue* named = entry_of(*map, "on_ranks")) {
    const std::vector<int64_t> numbers = whole_numbers(*named);
    ranks.insert(ranks.end(), numbers.begin(), numbers.end());
    const bool has_others = std::ranges::any_of(*map, [](const PlainEntry& entry) {
      return entry.key != "on_ranks" && entry.key != "value" && entry.key != "otherwise";
    });
    return !numbers.empty() && entry_of(*map, "value") != nullptr && !has_others;
  }
  return std::ranges::all_of(
      *map, [&](const PlainEntry& entry) { return add_named_ranks(entry.value, ranks); });
}

namespace {

const PlainEntry* find_below(const PlainValue& value, std::string_view name) {
  const PlainValue::Map* map = value.get_if<PlainValue::Map>();
  for (size_t i = 0; map != nullptr && i < map->size(); ++i) {
    const PlainEntry& entry = (*map)[i];
    if (name == entry.key) {
      return &entry;
    }
    if (name.starts_with(entry.key + ".")) {
      return find_below(entry.value, name.substr(entry.key.size() + 1));
    }
  }
  return nullptr;
}

}  // namespace

const PlainValue* find_argument_value(const Object& strategy, const std::string& name) {
  for (const ObjectArgument& argument : strategy.arguments) {
    if (argument.name == name) {
      return &argument.value;
    }
  }
  const PlainEntry* entry = find_argument_entry(strategy, name);
  return entry == nullptr ? nullptr : &entry->value;
}

const PlainEntry* find_argument_entry(const Object& strategy, const std::string& name) {
  for (const ObjectArgument& argument : strategy.arguments) {
    if (name.starts_with(argument.name + ".")) {
      return find_below(argument.value, std::string_view(name).substr(argument.name.size() + 1));
    }
  }
  return nullptr;
}

StrategyArguments strategy_arguments_of(const Object& strategy) {
  StrategyArguments arguments;
  for (const ObjectArgument& argument : strategy.arguments) {
    set_argument(argument.name, argument.value, arguments);
  }
  return arguments;
}

namespace {

PlainValue plain_value(const StrategyArguments::Value& value, const SourcePlace& place) {
  return std::visit(
      [&place](const auto& each) -> PlainValue {
        if constexpr (std::is_same_v<std::decay_t<decltype(each)>, std::vector<std::string>>) {
          PlainValue::List list;
          for (const std::string& text : each) {
            list.push_back({text, place});
          }
          return {std::move(list), place};
        } else {
          return {each, place};
        }
      },
      value);
}

/// What holds the rest of a name behind its first dots: maps, made where they are missing.
PlainValue& value_below(PlainValue& within, const std::string& name, const SourcePlace& place) {
  if (name.empty()) {
    return within;
  }
  if (within.get_if<PlainValue::Map>() == nullptr) {
    within = {PlainValue::Map(), place};
  }
  auto& map = std::get<PlainValue::Map>(within.value);
  const std::string key = name.substr(0, name.find('.'));
  auto found = std::ranges::find(map, key, &PlainEntry::key);
  if (found == map.end()) {
    found = map.insert(map.end(), {key, {{}, place}});
  }
  return value_below(found->value, name.substr(std::min(name.size(), key.size() + 1)), place);
}

}  // namespace

Object object_of(const std::string& name, const StrategyArguments& arguments,
                 const SourcePlace& place) {
  PlainValue all{PlainValue::Map(), place};
  for (const auto& [argument, value] : arguments.all()) {
    value_below(all, argument, place) = plain_value(value, place);
  }
  Object object{name, {}, place};
  for (const PlainEntry& entry : std::get<PlainValue::Map>(all.value)) {
    object.arguments.push_back({entry.key, entry.value, place});
  }
  return object;
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

std::string text_with(const Object& object, const Changed& changed) {
  std::string text;
  for (const ObjectArgument& argument : object.arguments) {
    text += (text.empty() ? "" : ", ") + argument.name + ": " +
            text_with(argument.name, argument.value, changed);
  }
  return text.empty() ? object.name : "{" + object.name + ": {" + text + "}}";
}

}  // namespace lockstep
