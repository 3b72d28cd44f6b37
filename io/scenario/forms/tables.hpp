#pragma once

#include <string_view>
#include <vector>

#include "io/scenario/forms/key_row.hpp"

namespace lockstep {

/// Every table of the format, in the order of the reference page: the root, the sections, the
/// faults ("fault.straggler") and the statements (marked as such).
const std::vector<TableRows>& all_tables();
/// Null when there is no such table, or no such key in it.
const TableRows* find_rows(std::string_view table);
const KeyRow* find_row(std::string_view table, std::string_view key);

}  // namespace lockstep
