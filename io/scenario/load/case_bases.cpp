#include "io/scenario/load/case_bases.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "io/scenario/load/merge.hpp"
#include "io/scenario/names/spelling.hpp"
#include "io/scenario/reader/scalar.hpp"

namespace lockstep {
namespace {

constexpr std::string_view nothing = "none";
/// Each is merged by recursion.
constexpr size_t longest_chain = 64;

}  // namespace

NodePtr CaseBases::merged(const Entry& entry) {
  if (const auto known = known_.find(entry.key); known != known_.end()) {
    return known->second;
  }
  if (!is_name(entry.key) || entry.key.find('.') != std::string::npos) {
    reader_.fail(entry.mark, fmt::format("`{}` is not a name for a case", entry.key),
                 "names are letters, digits and `_`");
  }
  open_.push_back(entry.key);
  NodePtr merged = merge_over_base(entry);
  open_.pop_back();
  known_[entry.key] = merged;
  return merged;
}

NodePtr CaseBases::merge_over_base(const Entry& entry) {
  if (entry.value->kind == Node::Kind::null) {
    return file_;
  }
  if (entry.value->kind != Node::Kind::map) {
    reader_.fail_type(*entry.value, entry.key, "a map of sections", "");
    return nullptr;
  }
  for (const Entry& section : entry.value->entries) {
    if (section.key == "version" || section.key == "include" || section.key == "cases") {
      reader_.fail(section.mark, fmt::format("a case cannot have its own `{}`", section.key),
                   "write it at the top of the file");
    }
  }
  const Entry* base = entry.value->find("base");
  const NodePtr below =
      base == nullptr || base->value->kind == Node::Kind::null ? file_ : base_of(entry, *base);
  const NodePtr own = without(entry.value, {"version", "include", "cases", "base"});
  return below ? merge(below, own, "scenario") : nullptr;
}

NodePtr CaseBases::base_of(const Entry& entry, const Entry& base) {
  if (base.value->kind != Node::Kind::scalar) {
    reader_.fail_type(*base.value, "base", "the name of a case, or `none`",
                      "write base: OTHER_CASE");
    return nullptr;
  }
  const std::string& name = base.value->text;
  if (name == nothing) {
    return only_version();
  }
  const Entry* other = cases_.find(name);
  if (other == nullptr) {
    std::vector<std::string_view> legal = {nothing};
    for (const Entry& one : cases_.entries) {
      legal.push_back(one.key);
    }
    reader_.fail(base.value->mark, fmt::format("the file has no case `{}`", name),
                 spelling_remedy(name, legal));
    return nullptr;
  }
  if (std::ranges::count(open_, std::string_view(other->key)) != 0) {
    reader_.fail(
        base.value->mark,
        fmt::format("the case `{}` is based on itself, directly or through others", entry.key),
        "remove one `base`");
    return nullptr;
  }
  if (open_.size() > longest_chain) {
    reader_.fail(base.value->mark,
                 fmt::format("more than {} cases are based on one another", longest_chain),
                 "base the case on the file");
    return nullptr;
  }
  return merged(*other);
}

NodePtr CaseBases::only_version() const {
  auto empty = std::make_shared<Node>(*file_);
  std::erase_if(empty->entries, [](const Entry& entry) { return entry.key != "version"; });
  return empty;
}

}  // namespace lockstep
