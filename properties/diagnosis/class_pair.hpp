#pragma once

#include <optional>
#include <string>
#include <vector>

#include "properties/diagnosis/call_of_statement.hpp"
#include "properties/diagnosis/edit.hpp"
#include "properties/diagnosis/member_class.hpp"

namespace lockstep {

/// Whether one of the first `end` calls is made at this site.
bool has_site(const std::vector<Call>& calls, size_t end, SiteId site);

/// Two sets of ranks whose sequences differ, and what is known of their decisions.
class ClassPair {
 public:
  ClassPair(const RunResult& run, const MemberClass& left, const MemberClass& right,
            size_t position);

  std::vector<Edit> edits() const;

  struct Separation {
    Decision decision;
    bool stops = false;
    bool parts_strategy = false;  ///< the call is the strategy's, and no statement is missing
  };
  /// What led the side that makes the call `own` there, and the other side elsewhere.
  std::optional<Separation> separation(bool on_left, size_t own) const;
  LaneId lane() const { return lane_; }
  std::vector<std::string> behind(SiteId decision) const;

  std::optional<CallOfStatement> only_in_statement(size_t position) const;
  std::optional<SkippedTurn> skipped_before(size_t position) const;

 private:
  DecidedCalls of_left() const { return {left_.calls, left_decisions_, lane_}; }
  DecidedCalls of_right() const { return {right_.calls, right_decisions_, lane_}; }
  Decisions decisions_of(const MemberClass& side) const;
  /// A call behind a guard that the other rank evaluated otherwise is the odd one; so is one more
  /// for an earlier part of a statement whose next part the other rank has come to.
  int evidence(size_t i, size_t j) const;
  /// Where both wait and nothing decides: one more turn of a loop that both know; then the user's
  /// own statement rather than a library's; then what fewer ranks do.
  int habit(size_t i, size_t j) const;
  bool is_statement(SiteId id) const;

  const RunResult& run_;
  const MemberClass& left_;
  const MemberClass& right_;
  LaneId lane_;
  Decisions left_decisions_;
  Decisions right_decisions_;
};

}  // namespace lockstep
