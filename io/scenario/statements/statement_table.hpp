#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "io/scenario/forms/field.hpp"
#include "io/scenario/forms/format.hpp"
#include "model/scenario/statement.hpp"

namespace lockstep {

/// One row of the table of statements.
struct StatementRow {
  StatementKind kind;
  std::string_view argument;               ///< key that a lone argument fills; empty: none
  std::vector<std::string_view> required;  ///< keys; `a|b` where one of two is enough
  std::string_view meaning;
  std::vector<Field<Statement>> fields;

  std::string_view name() const { return name_of(kind); }
  /// Legal in a program of `cluster.ranks`, which has no trainer.
  bool bare() const { return kind < StatementKind::fit; }
};

const std::vector<StatementRow>& statement_rows();
const StatementRow* find_statement(std::string_view name);

/// A list of statements; complaints about each wrong one.
std::vector<Statement> read_statements(Reader& reader, const Node& node, std::string_view key);

struct StatementsForm : FormWithoutWords {
  static constexpr std::string_view type = "statements";
  static std::optional<std::vector<Statement>> read(Reader& reader, const Node& node,
                                                    const KeyRow& row) {
    return read_statements(reader, node, row.key);
  }
};

/// `{NAME: expr, ..}`; a name may be any log key where `log_keys`.
std::vector<Binding> read_bindings(Reader& reader, const Node& node, std::string_view key,
                                   bool log_keys);

}  // namespace lockstep
