#include "model/user_program/thread_calls.hpp"

#include <fmt/core.h>

#include "model/user_program/sites.hpp"

namespace lockstep {

void ThreadCalls::note(OpKind kind, GroupId group, SiteId site) {
  const auto thread = first_of_.find(rank_.port().lane());
  if (thread != first_of_.end() && is_collective(kind)) {
    thread->second.try_emplace(group, site);
  }
}

void ThreadCalls::end(const Statement& statement, const std::vector<LaneId>& threads) {
  std::map<GroupId, SiteId> first;
  for (const LaneId thread : threads) {
    for (const auto& [group, site] : first_of_[thread]) {
      const auto [known, is_new] = first.try_emplace(group, site);
      if (!is_new) {
        log_.add({"LS103", site,
                  fmt::format("two host threads of `{}` call collectives of one group: the "
                              "scheduler of the operating system decides which comes first, on "
                              "each rank anew",
                              name_of(statement.kind)),
                  "give each thread a group of its own (new_group), or call from one thread"});
      }
    }
  }
  for (const LaneId thread : threads) {
    first_of_.erase(thread);
  }
}

}  // namespace lockstep
