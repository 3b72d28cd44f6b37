#include "model/scenario/sample_table.hpp"

#include <algorithm>
#include <map>

namespace lockstep {

std::vector<ColumnGroup> column_groups(const std::vector<std::string>& names) {
  std::map<std::string, size_t> by_name;
  for (size_t i = 0; i < names.size(); ++i) {
    by_name.emplace(names[i], i);
  }
  std::vector<ColumnGroup> groups;
  for (const std::string& name : names) {
    constexpr std::string_view first = "_0";
    if (!name.ends_with(first) || name.size() == first.size()) {
      continue;
    }
    ColumnGroup group{name.substr(0, name.size() - first.size()), {}};
    for (auto at = by_name.find(name); at != by_name.end();
         at = by_name.find(group.name + "_" + std::to_string(group.columns.size()))) {
      group.columns.push_back(at->second);
    }
    if (group.columns.size() > 1 && by_name.count(group.name) == 0) {
      groups.push_back(std::move(group));
    }
  }
  return groups;
}

std::vector<std::string> column_names(const SampleTable& table) {
  std::vector<std::string> names;
  for (const SampleTable::Column& column : table.columns()) {
    names.push_back(column.name);
  }
  for (ColumnGroup& group : column_groups(names)) {
    names.push_back(std::move(group.name));
  }
  return names;
}

}  // namespace lockstep
