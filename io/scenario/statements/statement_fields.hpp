#pragma once

#include <vector>

#include "io/scenario/statements/statement_table.hpp"

namespace lockstep {

using StatementFields = std::vector<Field<Statement>>;

/// The keys of every communication: tensor, elements, dtype, group, stream, async, as.
StatementFields communication_fields(StatementFields own = {});

std::vector<StatementRow> communication_rows();
std::vector<StatementRow> device_rows();
std::vector<StatementRow> control_rows();
std::vector<StatementRow> lightning_rows();

}  // namespace lockstep
