#include "io/scenario/forms/tables.hpp"

#include <string>

#include "io/scenario/sections/sections.hpp"
#include "io/scenario/statements/statement_table.hpp"

namespace lockstep {
namespace {

/// Keys that the loader itself follows before anything is read.
std::vector<KeyRow> root_rows() {
  std::vector<KeyRow> rows = rows_of(scenario_table());
  KeyRow include{"include", "", "read first, in order; this file is then merged over them"};
  include.type = "path or list";
  KeyRow cases{"cases", "", "each case is this file with the case merged over it"};
  cases.type = "map NAME: scenario";
  cases.table = "scenario";
  rows.insert(rows.begin() + 1, include);
  rows.push_back(cases);
  return rows;
}

std::vector<KeyRow> case_rows() {
  KeyRow base{"base", "the file", "the case that this one is merged over; `none`: over nothing"};
  base.type = "text";
  return {base};
}

std::vector<KeyRow> data_rows() {
  std::vector<KeyRow> rows = rows_of(loader_table());
  for (const std::string_view stage : {"train", "val", "test", "predict"}) {
    KeyRow row{stage, "the keys of `data`", "the loader of that stage, or a list of loaders"};
    row.type = "map, or list of maps";
    row.table = "data";
    rows.push_back(row);
  }
  return rows;
}

std::vector<KeyRow> program_rows() {
  KeyRow row{"automatic_optimization", "true", "false: the hooks call backward and step"};
  row.type = "bool";
  KeyRow own_functions{"functions", "{}", "what `call` runs: methods of the user's own"};
  own_functions.type = "map NAME: statements";
  return {row, own_functions};
}

constexpr std::string_view fault_tables[] = {
    "fault.straggler",     "fault.slow_data",    "fault.slow_link",       "fault.lost_rank",
    "fault.lost_node",     "fault.lost_message", "fault.corrupted_value", "fault.exception",
    "fault.out_of_memory", "fault.signal"};

}  // namespace

const std::vector<TableRows>& all_tables() {
  static const std::vector<TableRows> tables = [] {
    std::vector<TableRows> all = {
        {"scenario", root_rows()},
        {"case", case_rows()},
        {"cluster", rows_of(cluster_table())},
        {"cluster.gpu", rows_of(gpu_table())},
        {"cluster.network", rows_of(network_table())},
        {"cluster.nvme", rows_of(nvme_table())},
        {"cluster.price", rows_of(price_table())},
        {"process_group", rows_of(process_group_table())},
        {"model", rows_of(model_table())},
        {"layer", rows_of(layer_extra_table())},
        {"Cost", rows_of(layer_cost_table())},
        {"data", data_rows()},
        {"trainer", rows_of(trainer_table())},
        {"program", program_rows()},
        {"verify", rows_of(verify_table())},
    };
    for (size_t kind = 0; kind < fault_names().size(); ++kind) {
      all.push_back({fault_tables[kind], rows_of(fault_table(static_cast<FaultKind>(kind)))});
    }
    for (const StatementRow& row : statement_rows()) {
      all.push_back({row.name(), rows_of(Table<Statement>{row.name(), row.fields}), true});
    }
    return all;
  }();
  return tables;
}

const TableRows* find_rows(std::string_view table) {
  for (const TableRows& rows : all_tables()) {
    if (rows.name == table && !rows.statement) {
      return &rows;
    }
  }
  return nullptr;
}

const KeyRow* find_row(std::string_view table, std::string_view key) {
  const TableRows* rows = find_rows(table);
  if (rows == nullptr) {
    return nullptr;
  }
  for (const KeyRow& row : rows->rows) {
    if (row.key == key) {
      return &row;
    }
  }
  return nullptr;
}

}  // namespace lockstep
