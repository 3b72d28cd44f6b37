#include "cli/render/group_names.hpp"

#include "properties/diagnosis/calls.hpp"
#include "properties/rank_set.hpp"

namespace lockstep::cli {

GroupNames::GroupNames(const Journal& journal) {
  for (Communicator& communicator : communicators(journal)) {
    names_[communicator.key] = std::move(communicator.label);
  }
  for (int32_t rank = 0; rank < journal.ranks(); ++rank) {
    if (journal.own_rank(rank) != rank) {
      add_groups_of(journal, rank);
    }
  }
}

// A group of neighbours is called as that of the rank that runs for this one, with other members.
void GroupNames::add_groups_of(const Journal& journal, int32_t rank) {
  const auto& groups = journal.groups[static_cast<size_t>(rank)];
  const auto& of_running = journal.groups[static_cast<size_t>(journal.own_rank(rank))];
  for (size_t number = 0; number < groups.size(); ++number) {
    const Membership& group = groups[number];
    const auto running = names_.find(of_running[number].communicator);
    if (group.communicator == of_running[number].communicator || running == names_.end() ||
        names_.contains(group.communicator)) {
      continue;
    }
    const std::string members = RankSet(of_running[number].members).phrase();
    std::string name = running->second;
    const size_t at = name.find(members);
    if (at != std::string::npos) {
      name.replace(at, members.size(), RankSet(group.members).phrase());
    }
    names_[group.communicator] = std::move(name);
  }
}

const std::string& GroupNames::operator[](uint64_t communicator) const {
  static const std::string unknown = "unknown group";
  const auto found = names_.find(communicator);
  return found == names_.end() ? unknown : found->second;
}

}  // namespace lockstep::cli
