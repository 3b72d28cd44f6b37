#include "properties/diagnosis/class_pair.hpp"

#include <algorithm>

#include "properties/diagnosis/batch_position.hpp"
#include "properties/diagnosis/call_meaning.hpp"
#include "properties/diagnosis/stop_decision.hpp"

namespace lockstep {

namespace {

LaneId lane_at(const MemberClass& left, const MemberClass& right, size_t position) {
  const std::vector<Call>& calls = position < left.calls.size() ? left.calls : right.calls;
  return position < calls.size() ? calls[position].ticket.lane : LaneId{};
}

}  // namespace

bool has_site(const std::vector<Call>& calls, size_t end, SiteId site) {
  return std::any_of(calls.begin(),
                     calls.begin() + static_cast<int64_t>(std::min(end, calls.size())),
                     [site](const Call& call) { return call.site == site; });
}

ClassPair::ClassPair(const RunResult& run, const MemberClass& left, const MemberClass& right,
                     size_t position)
    : run_(run),
      left_(left),
      right_(right),
      lane_(lane_at(left, right, position)),
      left_decisions_(decisions_of(left)),
      right_decisions_(decisions_of(right)) {}

std::vector<Edit> ClassPair::edits() const {
  const EditJudges judges{[this](size_t i, size_t j) { return evidence(i, j); },
                          [this](size_t i, size_t j) { return habit(i, j); }};
  return smallest_edit({left_.calls, left_.open()}, {right_.calls, right_.open()}, judges);
}

std::optional<ClassPair::Separation> ClassPair::separation(bool on_left, size_t own) const {
  const MemberClass& caller = on_left ? left_ : right_;
  const Decisions& mine = on_left ? left_decisions_ : right_decisions_;
  const Decisions& theirs = on_left ? right_decisions_ : left_decisions_;
  const Call& call = caller.calls[own];
  if (call.ticket.lane != lane_) {
    return std::nullopt;
  }
  const Sites& sites = run_.journal->sites;
  if (auto guard = guard_that_differs(sites, call.site, mine, call.row, theirs)) {
    return Separation{*guard};
  }
  if (auto stop = decision_to_stop(sites, mine, call.row, theirs)) {
    return Separation{*stop, true};
  }
  if (auto statement = guard_of_statement(sites, call, mine, theirs)) {
    return Separation{statement->decision, false, true};
  }
  const auto batches = unequal_batches(sites, mine, call.row, theirs);
  if (batches && is_in_extra_batch(sites, mine, call.row, theirs)) {
    return Separation{*batches};  // whatever was decided within a batch that the others lack
  }
  if (!batches && !is_statement(call.site)) {
    if (const auto parting = parting_before(sites, mine, call.row, theirs)) {
      return Separation{*parting, false, true};
    }
  }
  const bool same_lane = own > 0 && caller.calls[own - 1].ticket.lane == lane_;
  const int64_t begin = same_lane ? caller.calls[own - 1].row : 0;
  const auto first = first_that_differs(mine, begin, call.row, theirs);
  if (first) {
    return Separation{*first};
  }
  return batches ? std::optional(Separation{*batches}) : std::nullopt;
}

std::vector<std::string> ClassPair::behind(SiteId decision) const {
  return statements_behind(run_.journal->sites, decision, left_decisions_, right_decisions_);
}

std::optional<CallOfStatement> ClassPair::only_in_statement(size_t position) const {
  return call_of_statement(run_.journal->sites, of_left(), of_right(), position);
}

std::optional<SkippedTurn> ClassPair::skipped_before(size_t position) const {
  return skipped_turn(of_left(), of_right(), position);
}

Decisions ClassPair::decisions_of(const MemberClass& side) const {
  const bool has_lane = lane_.value < run_.journal->lanes(side.rank());
  return {*run_.journal, side.rank(), has_lane ? lane_.value : 0};
}

int ClassPair::evidence(size_t i, size_t j) const {
  const Sites& sites = run_.journal->sites;
  const Call& a = left_.calls[i];
  const Call& b = right_.calls[j];
  if (const int later = order_of(sites, a.site, b.site); later != 0) {
    return later;
  }
  const bool left_extra = is_in_extra_batch(sites, left_decisions_, a.row, right_decisions_);
  const bool right_extra = is_in_extra_batch(sites, right_decisions_, b.row, left_decisions_);
  if (left_extra != right_extra) {
    return left_extra ? -1 : 1;
  }
  const bool left_differs =
      guard_that_differs(sites, a.site, left_decisions_, a.row, right_decisions_).has_value();
  const bool right_differs =
      guard_that_differs(sites, b.site, right_decisions_, b.row, left_decisions_).has_value();
  const bool differs = left_differs != right_differs;
  // `if rank == 0: call` and, further down, `if rank == 1: call`: two ways of one call.
  const bool other_way =
      differs && a.kind == b.kind &&
      (left_differs ? guard_is_open(sites, b.site, right_decisions_, b.row, left_decisions_)
                    : guard_is_open(sites, a.site, left_decisions_, a.row, right_decisions_));
  return !differs || other_way ? 0 : left_differs ? -1 : 1;
}

int ClassPair::habit(size_t i, size_t j) const {
  const Call& a = left_.calls[i];
  const Call& b = right_.calls[j];
  const bool left_again = has_site(left_.calls, i, a.site) && has_site(right_.calls, j, a.site);
  const bool right_again = has_site(left_.calls, i, b.site) && has_site(right_.calls, j, b.site);
  if (left_again != right_again) {
    return left_again ? -1 : 1;
  }
  const bool left_stated = is_statement(a.site);
  const bool right_stated = is_statement(b.site);
  if (left_stated != right_stated) {
    return left_stated ? -1 : 1;
  }
  return left_.ranks.size() <= right_.ranks.size() ? -1 : 1;
}

bool ClassPair::is_statement(SiteId id) const {
  const Site* site = run_.journal->sites.find(id);
  return site != nullptr && site->line > 0;
}

}  // namespace lockstep
