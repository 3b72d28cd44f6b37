#include <algorithm>

#include "io/scenario/statements/statement_fields.hpp"

namespace lockstep {
namespace {

using Kind = StatementKind;

/// A list of lists: each becomes a statement that holds one thread's.
struct ThreadsForm : FormWithoutWords {
  static constexpr std::string_view type = "list of statements of each thread";
  static std::optional<std::vector<Statement>> read(Reader& reader, const Node& node,
                                                    const KeyRow& row) {
    const bool lists = node.kind == Node::Kind::list && node.items.size() > 1 &&
                       std::ranges::all_of(node.items, [](const NodePtr& item) {
                         return item->kind == Node::Kind::list;
                       });
    if (!lists) {
      reader.fail_type(node, row.key, "a list of statements of each thread, two or more",
                       "write {threads: [[..], [..]]}");
      return std::nullopt;
    }
    std::vector<Statement> threads;
    for (const NodePtr& item : node.items) {
      Statement thread;
      thread.kind = Kind::thread;
      thread.place = reader.place(*item);
      thread.body = read_statements(reader, *item, row.key);
      threads.push_back(std::move(thread));
    }
    return threads;
  }
};

/// `if` and `repeat` keep their keys beside them; their fields are those keys.
StatementRow branch_row() {
  return {
      Kind::branch,
      "if",
      {"then"},
      "evaluated on each rank separately",
      {field<&Statement::expression>({"if", "required", "the condition"}),
       field<&Statement::body, StatementsForm>({"then", "required", "statements if it is true"}),
       field<&Statement::otherwise, StatementsForm>({"else", "[]", "statements if it is false"})}};
}

StatementRow repeat_row() {
  return {Kind::repeat,
          "repeat",
          {"do"},
          "repeats statements on this rank",
          {field<&Statement::expression>({"repeat", "required", "how many times"}),
           field<&Statement::body, StatementsForm>({"do", "required", "the statements to repeat"}),
           field<&Statement::result, NameForm>({"as", "", "name of the index, from 0"})}};
}

}  // namespace

std::vector<StatementRow> control_rows() {
  return {
      {Kind::let, "", {}, "bind names: map NAME: expr; `self.NAME` on the module", {}},
      {Kind::append, "", {}, "add to a list, made if absent: map NAME: expr", {}},
      {Kind::del,
       "names",
       {"names"},
       "unbinds names; a tensor's memory returns with its last name",
       {field<&Statement::names, NamesForm>({"names", "required", "one name, or a list"})}},
      {Kind::assertion,
       "value",
       {"value"},
       "reports a finding on each rank where it is false",
       {field<&Statement::expression>({"value", "required", "the condition"})}},
      branch_row(),
      repeat_row(),
      {Kind::return_hook, "", {}, "ends the hook on this rank", {}},
      {Kind::raise,
       "message",
       {"message"},
       "an exception on this rank",
       {field<&Statement::text>({"message", "required", "its message"})}},
      {Kind::call,
       "function",
       {"function"},
       "runs a function of `program.functions`; `return` there ends the function alone",
       {field<&Statement::name, NameForm>({"function", "required", "its name"})}},
      {Kind::attempt,
       "do",
       {"do", "except"},
       "catches what `do` raises (`raise`, an error of the framework, a fault), then runs `except`",
       {field<&Statement::body, StatementsForm>({"do", "required", "what may raise"}),
        field<&Statement::otherwise, StatementsForm>(
            {"except", "required", "what runs once it has raised"})}},
      {Kind::threads,
       "threads",
       {"threads"},
       "host threads of this rank, which goes on when all have ended",
       {field<&Statement::body, ThreadsForm>({"threads", "required", "what each of them does"})}},
  };
}

}  // namespace lockstep
