#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/program/journal.hpp"
#include "properties/rank_set.hpp"

namespace lockstep {

/// One collective as one rank called it.
struct Call {
  OpKind kind = OpKind::event;
  DType dtype = DType::uint8;
  Reduction reduction = Reduction::sum;
  int32_t root = 0;
  int64_t bytes = 0;
  uint64_t splits = 0;  ///< a hash of what must agree: parts of reduce_scatter, members of a group
  SiteId site{};
  Ticket ticket{};
  int64_t row = 0;  ///< in the journal of the ticket's lane

  /// Call properties that members of a group must agree on. Sites may differ by branch.
  bool same_arguments(const Call& other) const;
  uint64_t arguments_hash() const;
};

/// The call that the user wrote: NCCL has no barrier, so c10d's is an all_reduce of one number.
OpKind called_kind(const Journal& journal, const Row& row);

/// "all_gather fp32 [1280]", "broadcast fp32 [4] from rank 0", "all_reduce avg fp32 [25]".
std::string text_of(const Call& call);

/// The calls that one rank made of one communicator, as hashes: equal hashes, equal sequences.
struct MemberCalls {
  int32_t rank = 0;
  bool knows_group = true;  ///< false: a member that never made the group
  int64_t count = 0;
  uint64_t arguments = 0;
  uint64_t sites = 0;
};

/// One communicator and what each of its members called on it.
struct Communicator {
  uint64_t key = 0;
  /// "world", "ranks 0-3", or where the program names it "pair (ranks 0-1)". No two have the same:
  /// the second one is "ranks 0-3, group 2".
  std::string label;
  RankSet members;
  std::vector<MemberCalls> calls;  ///< by rank, one a member
  SiteId made_at{};                ///< its new_group
};

/// Whether there is no communicator but the world, and all ranks called it alike: found from the
/// ranks with a journal of their own alone.
bool call_world_alike(const Journal& journal);
/// All communicators that a journal knows, by key; the world first.
std::vector<Communicator> communicators(const Journal& journal);

/// The sequence of calls of one rank on one communicator, in the order of submission. When several
/// lanes use it, by the time of issue.
std::vector<Call> calls_of(const Journal& journal, int32_t rank, uint64_t communicator);
/// The same of all communicators that the rank called, by key.
std::map<uint64_t, std::vector<Call>> calls_by_communicator(const Journal& journal, int32_t rank);

/// The communicator of a row's group, or nothing when the rank never came to own that group.
std::optional<uint64_t> communicator_of(const Journal& journal, int32_t rank, GroupId group);

/// How many of these calls are at a site.
int64_t count_of(const std::vector<Call>& calls, SiteId site);

/// Whether a new_group of this rank names one of `ranks` as a member.
bool makes_group_of(const Journal& journal, int32_t rank, const Call& call, const RankSet& ranks);

}  // namespace lockstep
