#include <fmt/format.h>

#include <algorithm>

#include "io/scenario/names/familiar_words.hpp"
#include "io/scenario/reader/scalar.hpp"
#include "io/scenario/statements/statement_fields.hpp"
#include "io/scenario/statements/statement_table.hpp"

namespace lockstep {
namespace {

/// The keys of one statement and its own; `at` may be in each map.
Table<Statement> table_of(const StatementRow& row) {
  Table<Statement> table{row.name(), row.fields};
  table.fields.push_back(
      field<&Statement::at>({"at", "", "the user's own place, \"model.py:41\""}));
  return table;
}

bool holds(const Node& map, std::string_view alternatives) {
  while (!alternatives.empty()) {
    const size_t bar = alternatives.find('|');
    const Entry* entry = map.find(alternatives.substr(0, bar));
    if (entry != nullptr && (entry->value->kind != Node::Kind::null || entry->value->faulty)) {
      return true;
    }
    alternatives.remove_prefix(bar == std::string_view::npos ? alternatives.size() : bar + 1);
  }
  return false;
}

std::string readable(std::string_view alternatives) {
  std::string out = "`";
  for (const char letter : alternatives) {
    out += letter == '|' ? std::string("` or `") : std::string(1, letter);
  }
  return out + "`";
}

// What a whole statement looks like.
std::string shape_remedy(const StatementRow& row) {
  if (row.kind == StatementKind::branch) {
    return "write {if: CONDITION, then: [..]}";
  }
  if (row.kind == StatementKind::repeat) {
    return "write {repeat: 3, do: [..]}";
  }
  std::string keys;
  for (const std::string_view key : row.required) {
    keys += fmt::format("{}{}: ..", keys.empty() ? "" : ", ", key.substr(0, key.find('|')));
  }
  return fmt::format("write {{{}: {{{}}}}}", row.name(), keys);
}

void check_required(Reader& reader, const Mark& mark, const Node& map, const StatementRow& row) {
  for (const std::string_view key : row.required) {
    if (!holds(map, key)) {
      reader.fail(mark, fmt::format("`{}` needs {}", row.name(), readable(key)), shape_remedy(row));
    }
  }
}

/// The map form of whatever follows the statement's name.
Node argument_map(Reader& reader, const Entry& entry, const StatementRow& row) {
  const Node& argument = *entry.value;
  Node map;
  map.kind = Node::Kind::map;
  map.mark = argument.mark;
  if (argument.kind == Node::Kind::map) {
    map.entries = argument.entries;
  } else if (argument.kind != Node::Kind::null) {
    if (row.argument.empty()) {
      reader.fail(argument.mark,
                  row.fields.empty() ? fmt::format("`{}` takes no argument", row.name())
                                     : fmt::format("`{}` takes a map", row.name()),
                  fmt::format("its keys: {}", fmt::join(keys_of(table_of(row)), ", ")));
      return map;
    }
    map.entries.push_back({std::string(row.argument), argument.mark, entry.value});
  }
  return map;
}

void read_named_bindings(Reader& reader, const Entry& entry, Statement& statement) {
  Node names = *entry.value;
  if (const Entry* at = names.find("at")) {
    const KeyRow row{"at", "", ""};
    fill<TextForm>(reader, *at->value, row, statement.at);
    std::erase_if(names.entries, [](const Entry& other) { return other.key == "at"; });
  }
  statement.bindings = read_bindings(reader, names, entry.key, false);
}

/// `if` and `repeat`: the whole map is theirs.
Statement read_with_siblings(Reader& reader, const Node& node, const Entry& head,
                             const StatementRow& row) {
  Statement statement;
  statement.kind = row.kind;
  statement.place = reader.place(head.mark);
  if (const Entry* other = node.find("elif"); other != nullptr && head.key == "if") {
    reader.fail(other->mark, "`if` has no key `elif`", "write else: [{if: CONDITION, then: [..]}]");
    return statement;
  }
  const size_t before = reader.complaints();
  read_table(reader, node, table_of(row), statement);
  if (reader.complaints() == before) {
    check_required(reader, head.mark, node, row);
    if (head.value->kind == Node::Kind::null && !head.value->faulty) {
      reader.fail(head.mark, fmt::format("`{}` needs an expression", row.name()), "");
    }
  }
  return statement;
}

void fail_unknown_statement(Reader& reader, const Entry& entry) {
  if (entry.key == "then" || entry.key == "else" || entry.key == "do") {
    const std::string_view owner = entry.key == "do" ? "repeat" : "if";
    reader.fail(entry.mark, fmt::format("`{}` must be written beside `{}`", entry.key, owner),
                owner == "if" ? "in brackets write braces: [{if: .., then: [..]}]"
                              : "in brackets write braces: [{repeat: 3, do: [..]}]");
    return;
  }
  std::vector<std::string_view> legal;
  for (const StatementRow& row : statement_rows()) {
    legal.push_back(row.name());
  }
  const std::string python = statement_for_python(entry.key);
  reader.fail(entry.mark, fmt::format("there is no statement `{}`", entry.key),
              python.empty() ? spelling_remedy(entry.key, legal) : python);
}

/// Looks for the key that names the statement, wherever it stands in the map.
const Entry* head_of(const Node& node) {
  for (const std::string_view name : {"if", "repeat"}) {
    if (const Entry* head = node.find(name)) {
      return head;
    }
  }
  return &node.entries.front();
}

// Of `log_dict` the bindings are checked.
void check_log_key(Reader& reader, const Statement& statement) {
  const Given<std::string>& name = statement.log.name;
  if (name && name->value.find_first_of(" \t\n") != std::string::npos) {
    reader.fail_at(name->place, fmt::format("`{}` is not a name", name->value),
                   "a log key cannot contain white space");
  }
}

std::optional<Statement> read_statement_map(Reader& reader, const Node& node) {
  const Entry& head = *head_of(node);
  const StatementRow* row = find_statement(head.key);
  if (row == nullptr) {
    fail_unknown_statement(reader, head);
    return std::nullopt;
  }
  if (row->kind == StatementKind::branch || row->kind == StatementKind::repeat) {
    return read_with_siblings(reader, node, head, *row);
  }
  Statement statement;
  statement.kind = row->kind;
  statement.place = reader.place(head.mark);
  if (node.entries.size() > 1) {
    const Entry& second = node.entries[1];
    reader.fail(
        second.mark,
        fmt::format("`{}` cannot be written beside `{}`: only `if` and `repeat` have keys beside "
                    "their own",
                    second.key, head.key),
        fmt::format("indent it below `{}`, or begin a new item with `-`", head.key));
  }
  if (row->kind == StatementKind::let || row->kind == StatementKind::append) {
    read_named_bindings(reader, head, statement);
    return statement;
  }
  const size_t before = reader.complaints();
  const Node map = argument_map(reader, head, *row);
  read_table(reader, map, table_of(*row), statement);
  if (reader.complaints() == before) {
    check_required(reader, head.mark, map, *row);
  }
  check_log_key(reader, statement);
  return statement;
}

std::optional<Statement> read_statement(Reader& reader, const Node& node) {
  if (node.kind == Node::Kind::map && !node.entries.empty()) {
    return read_statement_map(reader, node);
  }
  if (node.kind != Node::Kind::scalar) {
    reader.fail_type(node, "a statement", "a name or a map", "write {NAME: argument}");
    return std::nullopt;
  }
  auto nothing = std::make_shared<Node>();
  nothing->mark = node.mark;
  Node map;
  map.kind = Node::Kind::map;
  map.mark = node.mark;
  map.entries.push_back({node.text, node.mark, std::move(nothing)});
  const StatementRow* row = find_statement(node.text);
  if (row != nullptr && (row->kind == StatementKind::let || row->kind == StatementKind::append)) {
    reader.fail(node.mark, fmt::format("`{}` needs names to bind", row->name()),
                fmt::format("write {{{}: {{x: 1}}}}", row->name()));
    return std::nullopt;
  }
  return read_statement_map(reader, map);
}

}  // namespace

const std::vector<StatementRow>& statement_rows() {
  static const std::vector<StatementRow> rows = [] {
    std::vector<StatementRow> all = communication_rows();
    for (const auto& part : {device_rows(), control_rows(), lightning_rows()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return rows;
}

const StatementRow* find_statement(std::string_view name) {
  for (const StatementRow& row : statement_rows()) {
    if (row.name() == name) {
      return &row;
    }
  }
  return nullptr;
}

std::vector<Statement> read_statements(Reader& reader, const Node& node, std::string_view key) {
  std::vector<Statement> statements;
  if (node.kind != Node::Kind::list) {
    reader.fail_type(node, key, "a list of statements", "begin each statement with `-`");
    return statements;
  }
  for (const NodePtr& item : node.items) {
    if (auto statement = read_statement(reader, *item)) {
      statements.push_back(std::move(*statement));
    }
  }
  return statements;
}

std::vector<Binding> read_bindings(Reader& reader, const Node& node, std::string_view key,
                                   bool log_keys) {
  std::vector<Binding> bindings;
  if (node.kind != Node::Kind::map) {
    reader.fail_type(node, key, "a map NAME: expr", "");
    return bindings;
  }
  for (const Entry& entry : node.entries) {
    const bool legal =
        log_keys ? !entry.key.empty() && entry.key.find_first_of(" \t\n") == std::string::npos
                 : is_name(entry.key);
    if (!legal) {
      reader.fail(entry.mark, fmt::format("`{}` is not a name", entry.key),
                  log_keys ? "a log key cannot contain white space"
                           : "a name has letters, digits and `_`, optionally after `self.`");
      continue;
    }
    KeyRow row{entry.key, "", ""};
    if (auto expression = ExpressionForm::read(reader, *entry.value, row)) {
      bindings.push_back({entry.key, std::move(*expression), reader.place(entry.mark)});
    }
  }
  return bindings;
}

}  // namespace lockstep
