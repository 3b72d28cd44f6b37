#pragma once

#include <limits>
#include <vector>

#include "properties/diagnosis/divergence.hpp"

namespace lockstep {

/// Members of a communicator that called the same and ended alike, represented by one of them.
struct MemberClass {
  RankSet ranks;
  RankEnd::Kind end = RankEnd::Kind::finished;
  bool knows_group = true;
  std::vector<Call> calls;  ///< of the first rank

  int32_t rank() const { return ranks.first(); }
  /// Might have called more had it not been stopped.
  bool open() const { return end != RankEnd::Kind::finished; }
  /// Was stopped by itself, not by others.
  bool broken() const { return end == RankEnd::Kind::raised || end == RankEnd::Kind::lost; }
};

/// Whether all members called the same: the quick answer for almost every communicator.
bool all_alike(const Communicator& communicator);

std::vector<MemberClass> member_classes(const RunResult& run, const Communicator& communicator);

inline constexpr size_t no_difference = std::numeric_limits<size_t>::max();
/// The first position at which not all classes make the same call with the same arguments.
size_t first_difference(const std::vector<MemberClass>& classes);

/// One class for each different call (or none) at a position: that of most ranks first, then by
/// rank.
std::vector<const MemberClass*> sides_at(const std::vector<MemberClass>& classes, size_t position);

/// All members by what they call at a position: those who make `odd` first, then by rank.
std::vector<Party> parties_at(const std::vector<MemberClass>& classes, size_t position,
                              const Call& odd);

}  // namespace lockstep
