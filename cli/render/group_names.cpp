#include "cli/render/group_names.hpp"

#include "properties/diagnosis/calls.hpp"

namespace lockstep::cli {

GroupNames::GroupNames(const Journal& journal) {
  for (Communicator& communicator : communicators(journal)) {
    names_[communicator.key] = std::move(communicator.label);
  }
}

const std::string& GroupNames::operator[](uint64_t communicator) const {
  static const std::string unknown = "unknown group";
  const auto found = names_.find(communicator);
  return found == names_.end() ? unknown : found->second;
}

}  // namespace lockstep::cli
