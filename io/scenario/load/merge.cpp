#include "io/scenario/load/merge.hpp"

#include <algorithm>
#include <map>

#include "io/scenario/forms/tables.hpp"

namespace lockstep {
namespace {

/// How the values of one key merge.
struct Merging {
  bool replaces = true;
  std::string_view table{};        ///< of the value, when it is a map of known keys
  std::string_view value_table{};  ///< of the values of a map of free keys
};

Merging merging_of(std::string_view table, std::string_view key) {
  const KeyRow* row = find_row(table, key);
  if (row == nullptr) {
    return {};
  }
  if (row->type.starts_with("map NAME: ") && !row->table.empty()) {
    return {false, "", row->table};
  }
  if (!row->table.empty()) {
    return {false, row->table, ""};
  }
  // `{csv: path}` or columns: columns merge with columns.
  return {row->type.find("map ") == std::string_view::npos, "", ""};
}

NodePtr merge_free(const NodePtr& base, const NodePtr& over, std::string_view value_table);

NodePtr merge_value(const NodePtr& base, const NodePtr& over, const Merging& how) {
  if (how.replaces || base->kind != Node::Kind::map || over->kind != Node::Kind::map) {
    return over;
  }
  return how.table.empty() ? merge_free(base, over, how.value_table) : merge(base, over, how.table);
}

template <class MergeEntry>
NodePtr merge_maps(const NodePtr& base, const NodePtr& over, const MergeEntry& merge_entry) {
  auto merged = std::make_shared<Node>(*base);
  merged->mark = over->mark;
  std::map<std::string_view, size_t> index;
  for (size_t position = 0; position < base->entries.size(); ++position) {
    index.emplace(base->entries[position].key, position);
  }
  for (const Entry& entry : over->entries) {
    const auto found = index.find(entry.key);
    if (found == index.end()) {
      merged->entries.push_back(entry);
    } else {
      const NodePtr below = base->entries[found->second].value;
      merged->entries[found->second] = {entry.key, entry.mark, merge_entry(entry, below)};
    }
  }
  return merged;
}

NodePtr merge_free(const NodePtr& base, const NodePtr& over, std::string_view value_table) {
  return merge_maps(base, over, [&](const Entry& entry, const NodePtr& below) {
    const Merging how{value_table.empty(), value_table, ""};
    return merge_value(below, entry.value, how);
  });
}

}  // namespace

NodePtr merge(const NodePtr& base, const NodePtr& over, std::string_view table) {
  if (base->kind != Node::Kind::map || over->kind != Node::Kind::map) {
    return over;
  }
  return merge_maps(base, over, [&](const Entry& entry, const NodePtr& below) {
    // A hook's statements replace the hook's statements: every key of `program` is a list.
    return merge_value(below, entry.value, merging_of(table, entry.key));
  });
}

NodePtr without(const NodePtr& map, const std::vector<std::string_view>& keys) {
  auto rest = std::make_shared<Node>(*map);
  std::erase_if(rest->entries, [&](const Entry& entry) {
    return std::find(keys.begin(), keys.end(), entry.key) != keys.end();
  });
  return rest;
}

}  // namespace lockstep
