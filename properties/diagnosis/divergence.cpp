#include "properties/diagnosis/divergence.hpp"

#include <algorithm>
#include <tuple>

#include "properties/diagnosis/batch_position.hpp"
#include "properties/diagnosis/call_meaning.hpp"
#include "properties/diagnosis/call_numbers.hpp"
#include "properties/diagnosis/class_pair.hpp"
#include "properties/diagnosis/echoes.hpp"
#include "properties/diagnosis/edit.hpp"
#include "properties/diagnosis/member_class.hpp"
#include "properties/diagnosis/silent_exchange.hpp"
#include "properties/diagnosis/skipped_turn.hpp"

namespace lockstep {

namespace {

constexpr size_t pairs_max = 16;

// Whether the call alone on one side comes on the other side too: then it was moved, not left out.
bool moved(const Sites& sites, const std::vector<Edit>& edits, const Edit& first,
           const MemberClass& left, const MemberClass& right) {
  const bool on_left = first.kind == EditKind::only_left;
  const Call& call = on_left ? left.calls[first.left] : right.calls[first.right];
  return std::any_of(edits.begin(), edits.end(), [&](const Edit& edit) {
    if (edit.kind != (on_left ? EditKind::only_right : EditKind::only_left)) {
      return false;
    }
    const Call& twin = on_left ? right.calls[edit.right] : left.calls[edit.left];
    return twin.same_arguments(call) && (!edit.free || twin.site == call.site ||
                                         are_ways(sites.find(twin.site), sites.find(call.site)));
  });
}

class Classifier {
 public:
  Classifier(const RunResult& run, const Communicator& communicator)
      : run_(run), communicator_(communicator), classes_(member_classes(run, communicator)) {}

  std::optional<Divergence> first() const {
    const size_t position = first_difference(classes_);
    if (position == no_difference) {
      return exchanged_silently();
    }
    const std::vector<const MemberClass*> sides = sides_at(classes_, position);
    std::optional<Divergence> ended;
    for (size_t i = 1; i < std::min(sides.size(), pairs_max + 1); ++i) {
      auto found = compare(*sides[i], *sides[0], position);
      if (found && found->repair != Repair::keep_rank) {
        return found;
      }
      ended = ended ? ended : found;
    }
    return ended;
  }

 private:
  std::optional<Divergence> compare(const MemberClass& left, const MemberClass& right,
                                    size_t position) const {
    const ClassPair pair(run_, left, right, position);
    if (const auto only = pair.only_in_statement(position)) {
      const bool on_left = only->turn.left_calls;
      Divergence found = left_out(on_left ? left : right, on_left ? right : left, only->turn,
                                  position, pair.lane());
      found.statement = only->statement;
      found.code = only->never_reached && found.code == "LS102" ? "LS101" : found.code;
      return found;
    }
    const std::vector<Edit> edits = pair.edits();
    const auto paid =
        std::find_if(edits.begin(), edits.end(), [](const Edit& edit) { return !edit.free; });
    std::optional<Divergence> edited;
    if (paid != edits.end()) {
      edited = by_edit(pair, edits, *paid, left, right);
    }
    // A rank that left the loop, or whose batches have ended, skips turns, too: that is the cause.
    const bool ends =
        edited && (edited->stops || !batches_of(run_.journal->sites, edited->decision).empty());
    const auto skipped = pair.skipped_before(position);
    if (skipped && !ends) {
      return left_out(skipped->left_calls ? left : right, skipped->left_calls ? right : left,
                      *skipped, position, pair.lane());
    }
    return edited ? edited : rank_that_ended(left, right, position);
  }

  Divergence by_edit(const ClassPair& pair, const std::vector<Edit>& edits, const Edit& paid,
                     const MemberClass& left, const MemberClass& right) const {
    // Before the first edit all calls are paired, so both positions are the same.
    const bool on_left = paid.kind != EditKind::only_right;
    const MemberClass& caller = on_left ? left : right;
    const MemberClass& lacker = on_left ? right : left;
    const size_t own = on_left ? paid.left : paid.right;
    Divergence found = at(caller, lacker, own);
    auto separation = pair.separation(on_left, own);
    if (!separation && own < lacker.calls.size()) {
      separation = pair.separation(!on_left, own);
    }
    if (separation) {
      found.decision = separation->decision;
      found.stops = separation->stops;
      if (separation->parts_strategy) {
        found.parted = pair.behind(separation->decision.site);
      }
    }
    found.decision_lane = pair.lane();
    if (found.stops) {
      name_missing_calls(found);
    } else if (exchanged(edits, paid, left, right)) {
      const bool groups = found.odd.kind == OpKind::new_group;
      found.code = groups ? "LS105" : "LS103";
      found.repair = groups ? Repair::same_group : Repair::exchange_calls;
    } else if (paid.kind == EditKind::arguments) {
      const bool groups = found.odd.kind == OpKind::new_group;
      found.code = groups ? "LS105" : "LS104";
      found.repair = groups ? Repair::same_group : Repair::change_arguments;
    } else {
      name_missing_calls(found);
      const bool as_often = found.calls_of_caller == found.calls_of_lacker;
      if (found.code == "LS102" && as_often && !found.decision && own < lacker.calls.size()) {
        found.code = "LS103";  // none is missing
        found.repair = Repair::exchange_calls;
      }
    }
    return found;
  }

  // One side left out a turn, and made the calls of the next one in its place.
  Divergence left_out(const MemberClass& caller, const MemberClass& lacker,
                      const SkippedTurn& skipped, size_t position, LaneId lane) const {
    Divergence found = at(caller, lacker, skipped.position);
    found.callers = caller.ranks;
    found.lackers = lacker.ranks;
    found.parties = {{caller.ranks, found.odd}, {lacker.ranks, std::nullopt}};
    found.decision = skipped.decision;
    found.decision_lane = lane;
    found.shows_at = static_cast<int64_t>(position);
    name_missing_calls(found);
    return found;
  }

  bool exchanged(const std::vector<Edit>& edits, const Edit& paid, const MemberClass& left,
                 const MemberClass& right) const {
    const Sites& sites = run_.journal->sites;
    const bool both = paid.left < left.calls.size() && paid.right < right.calls.size();
    return (both &&
            ways_exchange(sites, left.calls[paid.left].site, right.calls[paid.right].site)) ||
           (paid.kind != EditKind::arguments && moved(sites, edits, paid, left, right));
  }

  void name_missing_calls(Divergence& found) const {
    const Journal& journal = *run_.journal;
    bool group_unknown = false;
    bool never_reached = false;
    for (const MemberClass& side : classes_) {
      if (side.ranks.intersects(found.lackers)) {
        group_unknown = group_unknown || !side.knows_group;
        never_reached = never_reached || !has_site(side.calls, side.calls.size(), found.odd.site);
      }
    }
    found.repair = Repair::add_calls;
    const Site* guard = found.decision ? journal.sites.find(found.decision->site) : nullptr;
    if (group_unknown || (found.odd.kind == OpKind::new_group &&
                          makes_group_of(journal, found.caller, found.odd, found.lackers))) {
      found.code = "LS105";
      found.repair = Repair::same_group;
    } else if (guard != nullptr && !guard->batches.empty()) {
      found.code = "LS102";
    } else if (guard != nullptr && found.decision->kind == ChoiceKind::branch &&
               depends_on_data(guard->condition)) {
      found.code = "LS109";
    } else {
      found.code = never_reached ? "LS101" : "LS102";
    }
  }

  // Nothing to repair between the calls, but one side was cut short and the other came further.
  std::optional<Divergence> rank_that_ended(const MemberClass& left, const MemberClass& right,
                                            size_t position) const {
    const bool left_ended = left.broken() && position >= left.calls.size();
    const bool right_ended = right.broken() && position >= right.calls.size();
    if (left_ended == right_ended) {
      return std::nullopt;
    }
    Divergence found = at(left_ended ? right : left, left_ended ? left : right, position);
    found.code = "LS101";
    found.repair = Repair::keep_rank;
    found.lackers = {};
    for (const MemberClass& side : classes_) {
      if (side.broken() && position >= side.calls.size()) {
        found.lackers.add(side.ranks);
      }
    }
    return found;
  }

  std::optional<Divergence> exchanged_silently() const {
    const auto exchange = silent_exchange(run_.journal->sites, classes_, pairs_max);
    if (!exchange) {
      return std::nullopt;
    }
    const MemberClass& reference = classes_.front();
    const MemberClass& other = classes_[exchange->other];
    const bool fewer = other.ranks.size() < reference.ranks.size();
    Divergence found = at(fewer ? other : reference, fewer ? reference : other, exchange->position);
    found.code = exchange->exchanged ? "LS103" : "LS303";
    found.repair = Repair::exchange_calls;
    found.silent = true;
    return found;
  }

  Divergence at(const MemberClass& caller, const MemberClass& lacker, size_t own) const {
    Divergence found;
    found.communicator = communicator_.key;
    found.group = communicator_.label;
    found.members = communicator_.members;
    found.call = static_cast<int64_t>(own);
    found.odd = caller.calls[own];
    found.caller = caller.rank();
    found.lacker = lacker.rank();
    found.parties = parties_at(classes_, own, found.odd);
    found.calls_of_caller =
        count_with_left_out(*run_.journal, found.caller, caller.calls, found.odd.site);
    found.calls_of_lacker =
        count_with_left_out(*run_.journal, found.lacker, lacker.calls, found.odd.site);
    for (const MemberClass& side : classes_) {
      const bool calls = own < side.calls.size();
      if (calls && side.calls[own].same_arguments(found.odd) &&
          side.calls[own].site == found.odd.site) {
        found.callers.add(side.ranks);
      } else if (calls || !side.open() || &side == &lacker) {
        found.lackers.add(side.ranks);
      }
    }
    return found;
  }

  const RunResult& run_;
  const Communicator& communicator_;
  std::vector<MemberClass> classes_;
};

}  // namespace

RankEnd::Kind end_of_rank(const RunResult& run, int32_t rank) {
  const auto at = static_cast<size_t>(rank);
  const RankEnd::Kind main = at < run.ends.size() ? run.ends[at].kind : RankEnd::Kind::finished;
  const auto waiting =
      std::lower_bound(run.waiting.begin(), run.waiting.end(), rank,
                       [](const WaitingLane& lane, int32_t wanted) { return lane.rank < wanted; });
  const bool waits = waiting != run.waiting.end() && waiting->rank == rank;
  return main == RankEnd::Kind::finished && waits ? RankEnd::Kind::stuck : main;
}

std::vector<Divergence> divergences_of(const RunResult& run) {
  if (run.journal == nullptr || call_world_alike(*run.journal)) {
    return {};
  }
  std::vector<Divergence> all;
  for (const Communicator& communicator : communicators(*run.journal)) {
    if (all_alike(communicator)) {
      continue;
    }
    if (auto found = Classifier(run, communicator).first()) {
      found->ways = found->decision ? ways_of(*run.journal, communicator.members,
                                              found->decision_lane, *found->decision)
                                    : std::vector<Way>{};
      all.push_back(std::move(*found));
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Divergence& a, const Divergence& b) {
    return std::tie(a.odd.row, a.communicator) < std::tie(b.odd.row, b.communicator);
  });
  std::vector<Divergence> first = without_echoes(*run.journal, without_twins(all));
  for (Divergence& divergence : first) {  // positions among calls that were simulated, until here
    const CallNumbers numbers(*run.journal, divergence.caller, divergence.communicator);
    divergence.call = numbers.of(divergence.call) - 1;
    divergence.shows_at = divergence.shows_at < 0 ? -1 : numbers.of(divergence.shows_at) - 1;
  }
  return first;
}

}  // namespace lockstep
