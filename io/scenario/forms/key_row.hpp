#pragma once

#include <limits>
#include <string_view>
#include <vector>

namespace lockstep {

/// Description of one key in a table, used by the reference page and the schema.
struct KeyRow {
  std::string_view key;
  std::string_view default_text;  ///< as the page shows it; empty: none
  std::string_view meaning;       ///< one line
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  bool reads_null = false;   ///< null is a value of its own, not the default
  std::string_view table{};  ///< the table of a map's keys, "cluster.gpu"
  /// Filled by `field` from the member that the key fills.
  std::string_view type{};
  bool list = false;
  std::vector<std::string_view> words{};  ///< the legal words of an enumeration
};

/// The row of a map whose keys another table lists.
inline KeyRow in_table(KeyRow row, std::string_view table) {
  row.table = table;
  return row;
}

/// One table without its members.
struct TableRows {
  std::string_view name;
  std::vector<KeyRow> rows;
  bool statement = false;  ///< the keys of a statement's map
};

}  // namespace lockstep
