#include "properties/diagnosis/member_class.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace lockstep {

namespace {

struct Side {
  Party party;
  const MemberClass* largest = nullptr;
};

bool same_call(const std::optional<Call>& a, const std::optional<Call>& b) {
  return a.has_value() == b.has_value() && (!a || (a->site == b->site && a->same_arguments(*b)));
}

std::vector<Side> split_at(const std::vector<MemberClass>& classes, size_t position) {
  std::vector<Side> sides;
  for (const MemberClass& one : classes) {
    const bool calls = position < one.calls.size();
    const auto call = calls ? std::optional<Call>(one.calls[position]) : std::nullopt;
    auto side = std::find_if(sides.begin(), sides.end(), [&call](const Side& known) {
      return same_call(known.party.call, call);
    });
    if (side == sides.end()) {
      side = sides.insert(sides.end(), Side{{RankSet(), call}, &one});
    }
    side->party.ranks.add(one.ranks);
    // Among ranks that make no call, prefer one that was not stopped by others.
    const auto weight = [](const MemberClass& candidate) {
      return std::make_tuple(!candidate.open(), candidate.broken(), candidate.ranks.size());
    };
    if (call ? one.ranks.size() > side->largest->ranks.size()
             : weight(one) > weight(*side->largest)) {
      side->largest = &one;
    }
  }
  return sides;
}

}  // namespace

bool all_alike(const Communicator& communicator) {
  const auto key = [](const MemberCalls& calls) {
    return std::tie(calls.arguments, calls.sites, calls.count, calls.knows_group);
  };
  return std::all_of(
      communicator.calls.begin(), communicator.calls.end(),
      [&](const MemberCalls& calls) { return key(calls) == key(communicator.calls.front()); });
}

std::vector<MemberClass> member_classes(const RunResult& run, const Communicator& communicator) {
  using Key = std::tuple<uint64_t, uint64_t, int64_t, bool, RankEnd::Kind>;
  std::map<Key, size_t> index;
  std::vector<MemberClass> classes;
  for (const MemberCalls& calls : communicator.calls) {
    const RankEnd::Kind end = end_of_rank(run, calls.rank);
    const Key key(calls.arguments, calls.sites, calls.count, calls.knows_group, end);
    const auto [at, fresh] = index.try_emplace(key, classes.size());
    if (fresh) {
      classes.push_back({RankSet(), end, calls.knows_group,
                         calls_of(*run.journal, calls.rank, communicator.key)});
    }
    classes[at->second].ranks.add(calls.rank);
  }
  return classes;
}

size_t first_difference(const std::vector<MemberClass>& classes) {
  const std::vector<Call>& reference = classes.front().calls;
  size_t first = no_difference;
  for (const MemberClass& one : classes) {
    const size_t longer = std::max(one.calls.size(), reference.size());
    for (size_t k = 0; k < std::min(longer, first); ++k) {
      if (k >= one.calls.size() || k >= reference.size() ||
          !one.calls[k].same_arguments(reference[k])) {
        first = k;
      }
    }
  }
  return first;
}

std::vector<const MemberClass*> sides_at(const std::vector<MemberClass>& classes, size_t position) {
  std::vector<Side> sides = split_at(classes, position);
  const auto most = std::max_element(sides.begin(), sides.end(), [](const Side& a, const Side& b) {
    return a.party.ranks.size() < b.party.ranks.size();
  });
  std::rotate(sides.begin(), most, std::next(most));
  std::vector<const MemberClass*> list;
  for (const Side& side : sides) {
    list.push_back(side.largest);
  }
  return list;
}

std::vector<Party> parties_at(const std::vector<MemberClass>& classes, size_t position,
                              const Call& odd) {
  std::vector<Party> parties;
  for (Side& side : split_at(classes, position)) {
    parties.push_back(std::move(side.party));
  }
  std::stable_partition(parties.begin(), parties.end(),
                        [&odd](const Party& party) { return same_call(party.call, odd); });
  return parties;
}

}  // namespace lockstep
