#pragma once

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "io/scenario/forms/field.hpp"
#include "io/scenario/forms/object_form.hpp"

namespace lockstep {

/// A map that a table describes. The record's `place` becomes that of the map.
template <class Record, Table<Record> (*table)()>
struct TableForm : FormWithoutWords {
  static constexpr std::string_view type = "map";
  static std::optional<Record> read(Reader& reader, const Node& node, const KeyRow& row) {
    if (node.kind != Node::Kind::map) {
      reader.fail_type(node, row.key, "a map", "");
      return std::nullopt;
    }
    Record record;
    record.place = reader.place(node);
    read_table(reader, node, table(), record);
    return record;
  }
};

}  // namespace lockstep
