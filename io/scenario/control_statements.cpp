#include "io/scenario/statement_fields.hpp"

namespace lockstep {
namespace {

using Kind = StatementKind;

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
  };
}

}  // namespace lockstep
