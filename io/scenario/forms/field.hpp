#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "io/scenario/forms/format.hpp"
#include "io/scenario/forms/key_row.hpp"
#include "io/scenario/names/spelling.hpp"
#include "io/scenario/reader/reader.hpp"
#include "model/scenario/placed.hpp"

namespace lockstep {

/// One key of a section and the member that it fills. The tables of fields are the only list of
/// legal keys: the loader, the JSON Schema and the test of the reference page read them.
template <class Record>
struct Field {
  KeyRow row;
  void (*read)(Reader&, const Node&, const KeyRow&, Record&);
};

template <class Record>
struct Table {
  std::string_view name;  ///< as messages and the schema call it: "cluster.network"
  std::vector<Field<Record>> fields;
};

template <class T>
struct MemberOf;
template <class Record, class Type>
struct MemberOf<Type Record::*> {
  using record = Record;
  using type = Type;
};

/// How a member is filled from a node, apart from the form of the value itself.
template <class Form, class T>
void fill(Reader& reader, const Node& node, const KeyRow& row, T& member) {
  if (auto value = Form::read(reader, node, row)) {
    member = std::move(*value);
  }
}
template <class Form, class T>
void fill(Reader& reader, const Node& node, const KeyRow& row, Given<T>& member) {
  if (auto value = Form::read(reader, node, row)) {
    member = Placed<T>{std::move(*value), reader.place(node)};
  }
}
template <class Form, class T>
void fill(Reader& reader, const Node& node, const KeyRow& row, std::vector<Placed<T>>& member) {
  if (node.kind != Node::Kind::list) {
    reader.fail_type(node, row.key, "a list", "write [a, b]");
    return;
  }
  for (const NodePtr& item : node.items) {
    if (auto value = Form::read(reader, *item, row)) {
      member.push_back(Placed<T>{std::move(*value), reader.place(*item)});
    }
  }
}

/// The type inside Given, a list of Placed, or the type itself.
template <class T>
struct InnerOf {
  using type = T;
  static constexpr bool list = false;
};
template <class T>
struct InnerOf<std::optional<T>> {
  using type = T;
  static constexpr bool list = false;
};
template <class T>
struct InnerOf<Given<T>> {
  using type = T;
  static constexpr bool list = false;
};
template <class T>
struct InnerOf<std::vector<Placed<T>>> {
  using type = T;
  static constexpr bool list = true;
};

template <class Form>
void describe(KeyRow& row, bool list) {
  row.type = Form::type;
  row.list = list;
  row.words = Form::words();
}

template <auto Member>
using FormOfMember = FormOf<typename InnerOf<typename MemberOf<decltype(Member)>::type>::type>;

/// `field<&ClusterSpec::nodes>({"nodes", "1", "machines"})`. The form (how the value is spelled)
/// follows from the member's type, unless it is named.
template <auto Member, class Form = FormOfMember<Member>>
Field<typename MemberOf<decltype(Member)>::record> field(KeyRow row) {
  using Record = typename MemberOf<decltype(Member)>::record;
  describe<Form>(row, InnerOf<typename MemberOf<decltype(Member)>::type>::list);
  return {row, [](Reader& reader, const Node& node, const KeyRow& known, Record& record) {
            fill<Form>(reader, node, known, record.*Member);
          }};
}

/// A key of the outer record that fills a member of one of its parts.
template <auto Part, auto Member, class Form = FormOfMember<Member>>
Field<typename MemberOf<decltype(Part)>::record> part_field(KeyRow row) {
  using Record = typename MemberOf<decltype(Part)>::record;
  describe<Form>(row, InnerOf<typename MemberOf<decltype(Member)>::type>::list);
  return {row, [](Reader& reader, const Node& node, const KeyRow& known, Record& record) {
            fill<Form>(reader, node, known, (record.*Part).*Member);
          }};
}

template <class Record>
std::vector<std::string_view> keys_of(const Table<Record>& table) {
  std::vector<std::string_view> keys;
  for (const Field<Record>& known : table.fields) {
    keys.push_back(known.row.key);
  }
  return keys;
}

/// Complains about a key that nothing knows.
void fail_unknown_key(Reader& reader, const Entry& entry, std::string_view where,
                      const std::vector<std::string_view>& legal);

/// Fills `record` from a map. Null values are skipped, unless the row reads them: they ask for the
/// default.
template <class Record>
void read_table(Reader& reader, const Node& node, const Table<Record>& table, Record& record) {
  if (node.kind != Node::Kind::map) {
    reader.fail_type(node, table.name, "a map", "");
    return;
  }
  for (const Entry& entry : node.entries) {
    const Field<Record>* known = nullptr;
    for (const Field<Record>& candidate : table.fields) {
      if (candidate.row.key == entry.key) {
        known = &candidate;
      }
    }
    if (known == nullptr) {
      fail_unknown_key(reader, entry, table.name, keys_of(table));
    } else if (entry.value->kind != Node::Kind::null || known->row.reads_null) {
      known->read(reader, *entry.value, known->row, record);
    }
  }
}

template <class Record>
std::vector<KeyRow> rows_of(const Table<Record>& table) {
  std::vector<KeyRow> rows;
  for (const Field<Record>& known : table.fields) {
    rows.push_back(known.row);
  }
  return rows;
}

}  // namespace lockstep
