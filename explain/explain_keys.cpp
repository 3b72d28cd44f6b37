#include "explain/explain_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "explain/key_example_table.hpp"
#include "explain/key_examples.hpp"
#include "io/scenario/forms/tables.hpp"
#include "io/scenario/statements/statement_table.hpp"
#include "model/scenario/hooks.hpp"
#include "rehearsal/text/wrapped_text.hpp"

namespace lockstep::cli {

namespace {

constexpr std::string_view fault_prefix = "fault.";

std::string type_of(const KeyRow& row) {
  std::string type(row.type);
  if (!row.words.empty()) {
    type = fmt::format("{}", fmt::join(row.words, ", "));
  }
  return row.list ? "list of " + type : type;
}

KeyPage::Key key_of(const KeyRow& row) {
  return {std::string(row.key), type_of(row), std::string(row.default_text),
          std::string(row.meaning), std::nullopt};
}

std::string_view meaning_of_layers(std::string_view table) {
  if (table == "case") {
    return "what a case takes beside the sections of a scenario";
  }
  return table == "layer" ? "what every layer takes beside its own arguments"
                          : "a layer of which only the costs are known";
}

KeyPage page_of_table(const TableRows& table) {
  KeyPage page;
  page.name = table.name;
  for (const KeyRow& row : table.rows) {
    page.keys.push_back(key_of(row));
  }
  if (!table.statement) {
    const size_t dot = table.name.find('.');
    const bool fault = table.name.starts_with(fault_prefix);
    const std::string_view parent = dot == table.name.npos ? "scenario" : table.name.substr(0, dot);
    const std::string_view key = dot == table.name.npos ? table.name : table.name.substr(dot + 1);
    const KeyRow* row = find_row(parent, key);
    page.meaning = fault            ? "a fault"
                   : row == nullptr ? meaning_of_layers(table.name)
                                    : row->meaning;
    page.scenario = fault            ? example_of_key(table.name, "at")
                    : row == nullptr ? example_of_key(table.name, table.rows.front().key)
                                     : example_of_key(parent, key);
    return page;
  }
  const StatementRow* statement = find_statement(table.name);
  page.meaning = fmt::format("a statement: {}", statement->meaning);
  page.scenario = example_of_statement(table.name);
  return page;
}

KeyPage page_of_key(const TableRows& table, const KeyRow& row) {
  if (table.statement) {
    return page_of_table(table);
  }
  KeyPage page;
  page.name = fmt::format("{}.{}", table.name, row.key);
  page.meaning = row.meaning;
  page.keys.push_back(key_of(row));
  page.is_modelled = std::ranges::count(keys_not_modelled(), page.name) == 0;
  page.scenario = example_of_key(table.name, row.key);
  return page;
}

const KeyRow* row_of(const TableRows& table, std::string_view key) {
  const auto found = std::ranges::find(table.rows, key, &KeyRow::key);
  return found == table.rows.end() ? nullptr : &*found;
}

std::optional<KeyPage> page_of_bare_key(std::string_view key) {
  std::vector<std::pair<const TableRows*, const KeyRow*>> found;
  for (const TableRows& table : all_tables()) {
    if (const KeyRow* row = row_of(table, key)) {
      found.emplace_back(&table, row);
    }
  }
  if (found.empty()) {
    return std::nullopt;
  }
  if (found.size() == 1) {
    return page_of_key(*found.front().first, *found.front().second);
  }
  KeyPage page;
  page.name = key;
  page.meaning = fmt::format("a key of {} tables", found.size());
  for (const auto& [table, row] : found) {
    page.others.push_back(table->statement ? std::string(table->name)
                                           : fmt::format("{}.{}", table->name, key));
  }
  return page;
}

std::optional<KeyPage> page_of_hook(std::string_view name) {
  const HookName* const hook = find_hook(name);
  if (hook == nullptr) {
    return std::nullopt;
  }
  KeyPage page;
  page.name = fmt::format("program.{}", name);
  page.meaning =
      name == "main" ? std::string(hook->when) : fmt::format("a hook, called {}", hook->when);
  if (hook->when.starts_with("takes the place")) {
    page.meaning = fmt::format("a hook that {}", hook->when);
  }
  page.is_modelled = hook->called;
  page.scenario = example_of_hook(name);
  return page;
}

}  // namespace

std::optional<KeyPage> find_key_page(std::string_view name) {
  for (const TableRows& table : all_tables()) {
    if (table.name == name ||
        (table.name.starts_with(fault_prefix) && table.name.substr(fault_prefix.size()) == name)) {
      return page_of_table(table);
    }
  }
  for (const TableRows& table : all_tables()) {
    const std::string begin = std::string(table.name) + ".";
    if (name.starts_with(begin)) {
      if (const KeyRow* row = row_of(table, name.substr(begin.size()))) {
        return page_of_key(table, *row);
      }
    }
  }
  constexpr std::string_view program = "program.";
  if (name.starts_with(program)) {
    return page_of_hook(name.substr(program.size()));
  }
  std::optional<KeyPage> key = page_of_bare_key(name);
  return key ? std::move(key) : page_of_hook(name);
}

std::vector<std::string> key_page_names() {
  std::vector<std::string> names;
  for (const TableRows& table : all_tables()) {
    names.emplace_back(table.name);
  }
  return names;
}

std::vector<std::string> all_key_names() {
  std::vector<std::string> names;
  for (const TableRows& table : all_tables()) {
    for (const KeyRow& row : table.rows) {
      names.push_back(fmt::format("{}.{}", table.name, row.key));
    }
  }
  return names;
}

namespace {

std::string shown(const std::string& value) { return value.empty() ? "none" : value; }

using Keys = std::vector<KeyPage::Key>;

template <class Condition>
std::string names_where(const Keys& keys, std::string_view title, Condition condition) {
  std::string names;
  for (const KeyPage::Key& key : keys) {
    if (condition(key)) {
      names += fmt::format(" {}", key.name);
    }
  }
  constexpr size_t width = 88;
  return names.empty() ? names
                       : fmt::format("\n  {}\n",
                                     fmt::join(wrapped(std::string(title) + names, width), "\n  "));
}

// Arguments of the class itself; its own documentation describes them.
std::string own_arguments(const Keys& keys) {
  return names_where(
      keys, "Its own arguments:", [](const KeyPage::Key& key) { return key.meaning.empty(); });
}

bool is_explained(const KeyPage::Key& key) {
  return !key.meaning.empty() && key.use != ArgumentUse::unmodelled &&
         key.use != ArgumentUse::no_effect;
}

std::string others_of(const Keys& keys) {
  const auto of_use = [](ArgumentUse use) {
    return [use](const KeyPage::Key& key) { return key.use == use; };
  };
  return names_where(keys, "Taken, and without effect here:", of_use(ArgumentUse::no_effect)) +
         names_where(keys, "Not modelled:", of_use(ArgumentUse::unmodelled));
}

std::string table_of(const Keys& all) {
  Keys keys;
  std::ranges::copy_if(all, std::back_inserter(keys), is_explained);
  size_t name = 3;
  size_t type = 4;
  for (const KeyPage::Key& key : keys) {
    name = std::max(name, key.name.size());
    type = std::max(type, std::min<size_t>(key.type.size(), 24));
  }
  std::string text = keys.empty() ? ""
                                  : fmt::format("\n  {:<{}}  {:<{}}  meaning (default)\n", "key",
                                                name, "type", type);
  for (const KeyPage::Key& key : keys) {
    text += fmt::format("  {:<{}}  {:<{}}  {} ({})\n", key.name, name, key.type, type, key.meaning,
                        shown(key.default_text));
  }
  return text;
}

Json use_of(const KeyPage::Key& key) {
  if (!key.use) {
    return {};
  }
  return key.use == ArgumentUse::unmodelled  ? "not modelled"
         : key.use == ArgumentUse::no_effect ? "without effect"
                                             : "modelled";
}

}  // namespace

std::string text_of(const KeyPage& page) {
  std::string text = fmt::format("{}: {}\n", page.name, page.meaning);
  if (!page.others.empty()) {
    text += "\n";
    for (const std::string& other : page.others) {
      text += fmt::format("  lockstep explain {}\n", other);
    }
    return text;
  }
  if (page.keys.size() == 1 && page.name.ends_with("." + page.keys.front().name)) {
    text += fmt::format("\n  type      {}\n  default   {}\n", page.keys.front().type,
                        shown(page.keys.front().default_text));
  } else {
    text += own_arguments(page.keys) + table_of(page.keys) + others_of(page.keys);
  }
  if (!page.facts.empty()) {
    text += "\n";
  }
  for (const std::string& fact : page.facts) {
    text += fmt::format("  {}\n", fmt::join(wrapped(fact, 94), "\n    "));
  }
  if (!page.is_modelled) {
    text += "\nNot modelled yet: a scenario that gives it is refused (exit 5).\n";
  }
  if (!page.scenario.empty()) {
    text += "\nExample\n" + page.scenario;
  }
  return text;
}

Json json_of(const KeyPage& page) {
  Json json = {{"schema_version", schema_version}, {"command", "explain"}};
  json["name"] = page.name;
  json["title"] = page.meaning;
  json["keys"] = Json::array();
  for (const KeyPage::Key& key : page.keys) {
    json["keys"].push_back({{"name", key.name},
                            {"type", key.type},
                            {"default", key.default_text.empty() ? Json() : Json(key.default_text)},
                            {"meaning", key.meaning},
                            {"use", use_of(key)}});
  }
  json["facts"] = page.facts;
  json["is_modelled"] = page.is_modelled;
  json["scenario"] = page.scenario.empty() ? Json() : Json(page.scenario);
  json["others"] = page.others;
  return json;
}

}  // namespace lockstep::cli
