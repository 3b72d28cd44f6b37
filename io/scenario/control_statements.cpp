#include "io/scenario/statement_fields.hpp"

namespace lockstep {
namespace {

using Kind = StatementKind;

/// `if` and `repeat` keep their keys beside them; their fields are those keys.
StatementRow branch_row() {
  return {Kind::branch,
          "if",
          {"then"},
          "each rank for itself",
          {field<&Statement::expression>({"if", "required", "the condition"}),
           field<&Statement::body, StatementsForm>({"then", "required", "where it is true"}),
           field<&Statement::otherwise, StatementsForm>({"else", "[]", "where it is false"})}};
}

StatementRow repeat_row() {
  return {Kind::repeat,
          "repeat",
          {"do"},
          "so many times on this rank",
          {field<&Statement::expression>({"repeat", "required", "how many times"}),
           field<&Statement::body, StatementsForm>({"do", "required", "what is repeated"}),
           field<&Statement::result, NameForm>({"as", "", "name of the index, from 0"})}};
}

}  // namespace

std::vector<StatementRow> control_rows() {
  return {
      {Kind::let, "", {}, "bind names: map NAME: expr; `self.NAME` on the module", {}},
      {Kind::append, "", {}, "add to a list, made if absent: map NAME: expr", {}},
      {Kind::assertion,
       "value",
       {"value"},
       "false on a rank is a finding there, in both worlds",
       {field<&Statement::expression>({"value", "required", "what must hold"})}},
      branch_row(),
      repeat_row(),
      {Kind::return_hook, "", {}, "ends the hook on this rank", {}},
      {Kind::raise,
       "message",
       {"message"},
       "an exception on this rank",
       {field<&Statement::text>({"message", "required", "what it says"})}},
  };
}

}  // namespace lockstep
