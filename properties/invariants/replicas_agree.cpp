#include "properties/invariants/replicas_agree.hpp"

#include <fmt/core.h>

#include <map>

#include "properties/diagnosis/remedy.hpp"

namespace lockstep {

namespace {

using Members = std::vector<const ReplicaValues*>;

bool all_equal(const Members& members) {
  for (const ReplicaValues* member : members) {
    if (!(member->values == members.front()->values)) {
      return false;
    }
  }
  return true;
}

// The first element that is not the same on all members; -1 when only sizes or dtypes differ.
int64_t first_difference(const Members& members) {
  const Values& reference = members.front()->values;
  for (int64_t i = 0; i < reference.size(); ++i) {
    for (const ReplicaValues* member : members) {
      const Values& values = member->values;
      if (values.dtype() != reference.dtype() || values.size() != reference.size()) {
        return -1;
      }
      if (!(values.slice(i, 1) == reference.slice(i, 1))) {
        return i;
      }
    }
  }
  return -1;
}

std::string element_text(const Values& values, int64_t element) {
  if (element < 0) {
    return fmt::format("{} [{}]", name_of(values.dtype()), values.size());
  }
  return values.dtype() == DType::int64 ? fmt::format("{}", values.integer(element))
                                        : fmt::format("{}", values.number(element));
}

Finding finding_of(const std::string& group, const std::string& name, const Members& members,
                   size_t names_differing) {
  const int64_t element = first_difference(members);
  std::map<std::string, RankSet> by_value;
  RankSet ranks;
  RankSet apart;
  for (const ReplicaValues* member : members) {
    ranks.add(member->rank);
    by_value[element_text(member->values, element)].add(member->rank);
    if (!(member->values == members.front()->values)) {
      apart.add(member->rank);
    }
  }
  Finding finding = lockstep::finding_of(
      "LS305", Level::error,
      fmt::format("{} {} not hold the same {} as rank {}", apart.phrase(),
                  apart.size() == 1 ? "does" : "do", name, members.front()->rank));
  finding.ranks = apart;
  finding.group = group;
  finding.why.text = element < 0 ? "the shapes differ" : fmt::format("element {} differs", element);
  for (const auto& [value, holders] : by_value) {
    finding.why.ways.push_back({holders, value});
    finding.did.push_back({holders, 0, fmt::format("{} = {}", name, value), no_site});
  }
  finding.follows.push_back("each rank trains its own model; only one of them is saved");
  if (names_differing > 1) {
    finding.follows.push_back(fmt::format("{} more differ", names_differing - 1));
  }
  finding.fix = remedy_for("LS305");
  return finding;
}

}  // namespace

std::vector<Finding> replicas_agree(std::span<const ReplicaValues> replicas) {
  // Names keep the order in which they were given: that is the order of the layers.
  std::map<std::string, std::vector<std::pair<std::string, Members>>> groups;
  std::map<std::pair<std::string, std::string>, size_t> place;
  for (const ReplicaValues& replica : replicas) {
    auto& names = groups[replica.group];
    const auto [at, fresh] = place.try_emplace({replica.group, replica.name}, names.size());
    if (fresh) {
      names.push_back({replica.name, {}});
    }
    names[at->second].second.push_back(&replica);
  }
  std::vector<Finding> findings;
  for (const auto& [group, names] : groups) {
    const std::pair<std::string, Members>* first = nullptr;
    size_t differing = 0;
    for (const auto& name : names) {
      if (!all_equal(name.second)) {
        first = first == nullptr ? &name : first;
        ++differing;
      }
    }
    if (first != nullptr) {
      findings.push_back(finding_of(group, first->first, first->second, differing));
    }
  }
  sort_findings(findings);
  return findings;
}

}  // namespace lockstep
