#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// A set of global ranks, kept as runs: a hundred thousand ranks that did the same cost one entry.
class RankSet {
 public:
  RankSet() = default;
  RankSet(std::initializer_list<int32_t> ranks);
  explicit RankSet(std::span<const int32_t> ranks);
  /// All ranks below `count`.
  static RankSet all(int32_t count);

  void add(int32_t rank);
  void add(const RankSet& other);
  bool contains(int32_t rank) const;
  bool empty() const { return runs_.empty(); }
  int64_t size() const;
  /// The smallest rank. Not of an empty set.
  int32_t first() const { return runs_.front().first; }
  bool intersects(const RankSet& other) const;
  std::vector<int32_t> ranks() const;

  /// "0-2, 5"; of more than sixteen runs the first fifteen and how many ranks there are.
  std::string text() const;
  /// "rank 0", "ranks 1-7", "no rank".
  std::string phrase() const;

  bool operator==(const RankSet&) const = default;
  bool operator<(const RankSet& other) const { return runs_ < other.runs_; }

 private:
  struct Run {
    int32_t first = 0;
    int32_t last = 0;
    auto operator<=>(const Run&) const = default;
  };
  std::vector<Run> runs_;  ///< ascending, never touching
};

/// RankSet::text of these ranks, in any order.
std::string ranks_text(std::span<const int32_t> ranks);

}  // namespace lockstep
