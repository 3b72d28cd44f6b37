#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/program/journal.hpp"
#include "properties/finding.hpp"

namespace lockstep {

/// So many `if`s and `repeat`s within each other are looked through.
inline constexpr int nesting_max = 64;

/// One evaluation of an `if` or a `repeat`.
struct Decision {
  SiteId site{};
  ChoiceKind kind = ChoiceKind::branch;
  uint32_t value = 0;  ///< branch: 1 = then; repeat: how often
  int64_t turn = 0;    ///< counts the evaluations at this site, from 0
  int64_t row = 0;
};

/// Where a loop over batches goes on to one, or ends a pass: as the training counts them, with
/// those that a simulation has left out. Where it has, a mark says what the loop has come to.
struct BatchMark {
  SiteId site{};
  bool goes_on = false;
  int64_t row = 0;
  int64_t batches = 0;              ///< of the pass that have begun, with this one
  int64_t passes = 0;               ///< that have ended, with this one
  bool is_behind_left_out = false;  ///< it was not simulated
};

/// The decisions of one lane of a rank, in order.
class Decisions {
 public:
  Decisions(const Journal& journal, int32_t rank, int32_t lane);

  /// The last one at a site before a row; null when there is none.
  const Decision* last_before(SiteId site, int64_t row) const;
  const Decision* at(SiteId site, int64_t turn) const;
  const std::vector<Decision>& all() const { return decisions_; }
  /// Marks rather than decisions.
  const std::vector<BatchMark>& batches() const { return batches_; }
  /// The statements of the user, behind an `if`, in which a row stands, from the innermost
  /// outwards. Their calls are the strategy's, at sites of the strategy.
  std::vector<const Decision*> statements_at(int64_t row) const;
  /// All such statements that this lane came to, in order.
  const std::vector<Decision>& statements() const { return statements_; }
  /// Whether this lane came to such a statement.
  bool came_to(SiteId statement) const;

 private:
  /// Which statements a row is in, behind a mark: an index of statements_, or -1 for none.
  struct Mark {
    int64_t row = 0;
    int64_t innermost = -1;
  };
  void note_mark(const Row& row, int64_t index);
  void number_batches(std::span<const RepeatedRows> left_out);

  std::vector<Decision> decisions_;
  std::vector<BatchMark> batches_;
  std::vector<Decision> statements_;               ///< where each begins
  std::vector<int64_t> around_;                    ///< of each: the one around it, or -1
  std::vector<Mark> marks_;                        ///< where one begins or ends
  std::map<SiteId, std::vector<size_t>> by_site_;  ///< indices of decisions_, by turn
};

/// The decision that directly led one rank to a call and the other elsewhere: the innermost `if` or
/// `repeat` around `site` that the two evaluated differently. `row`: of the call, on `caller`.
std::optional<Decision> guard_that_differs(const Sites& sites, SiteId site, const Decisions& caller,
                                           int64_t row, const Decisions& other);

/// The first decision of `left` within rows [begin, end) that `right` took otherwise: a `return` in
/// a branch separates ranks at statements that it does not enclose.
std::optional<Decision> first_that_differs(const Decisions& left, int64_t begin, int64_t end,
                                           const Decisions& right);

/// The last decision of `left` before a row that `right` took otherwise, of those that lead to
/// statements of the user in which the strategy makes calls: what a strategy does depends on all
/// that it was asked for before.
std::optional<Decision> parting_before(const Sites& sites, const Decisions& left, int64_t row,
                                       const Decisions& right);

/// What the user's statements behind a decision are, on either side: "forward", "optimizer_step".
std::vector<std::string> statements_behind(const Sites& sites, SiteId decision,
                                           const Decisions& left, const Decisions& right);

/// Whether a site stands in an `if` or `repeat`, at whatever depth.
bool stands_in(const Sites& sites, SiteId site, SiteId guard);

/// Which of these ranks took which way; ranks that never decided are left out.
std::vector<Way> ways_of(const Journal& journal, const RankSet& ranks, LaneId lane,
                         const Decision& decision);

/// How often this rank had come to the site of its decision by then, that time included: also in
/// what a simulation has left out.
int64_t times_until(const Journal& journal, int32_t rank, LaneId lane, const Decision& decision);

/// Whether the other rank has not come to an `if` around `site` yet that looks at which rank it is:
/// then it may make that call, or another in its place.
bool guard_is_open(const Sites& sites, SiteId site, const Decisions& caller, int64_t row,
                   const Decisions& other);

/// Whether a condition depends on more than the place of a rank and the progress of the loops, so
/// that ranks may differ by their data. An unknown (empty) condition does not count.
bool depends_on_data(std::string_view condition);

}  // namespace lockstep
