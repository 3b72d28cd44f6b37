#include "properties/diagnosis/echoes.hpp"

#include <limits>
#include <map>
#include <string>
#include <tuple>

#include "properties/diagnosis/call_numbers.hpp"

namespace lockstep {

namespace {

constexpr int64_t never = std::numeric_limits<int64_t>::max();

// Where in its host order a rank came to the place of a divergence.
int64_t row_at(const Journal& journal, const Divergence& divergence, int32_t rank) {
  const std::vector<Call> calls = calls_of(journal, rank, divergence.communicator);
  const auto at = static_cast<size_t>(divergence.call);
  return at < calls.size() ? calls[at].row : never;
}

bool leads_to(const Journal& journal, const Divergence& cause, const Divergence& effect) {
  const bool same_decision = cause.decision && effect.decision &&
                             cause.decision->site == effect.decision->site &&
                             cause.decision->turn == effect.decision->turn;
  const bool same_end =
      cause.repair == Repair::keep_rank && cause.lackers.intersects(effect.lackers);
  if (same_decision || same_end) {
    return true;
  }
  for (const int32_t rank : {effect.caller, effect.lacker}) {
    if (cause.members.contains(rank) &&
        row_at(journal, cause, rank) <= row_at(journal, effect, rank)) {
      return true;
    }
  }
  return false;
}

}  // namespace

// One statement that is wrong in every data-parallel group is one defect.
std::vector<Divergence> without_twins(const std::vector<Divergence>& all) {
  std::vector<Divergence> folded;
  std::map<std::tuple<std::string, SiteId, Repair>, size_t> place;
  for (const Divergence& divergence : all) {
    const bool known_site = divergence.odd.site != no_site;
    const auto [at, fresh] =
        place.try_emplace({divergence.code, divergence.odd.site, divergence.repair}, folded.size());
    if (fresh || !known_site) {
      folded.push_back(divergence);
      continue;
    }
    Divergence& first = folded[at->second];
    const bool alike = !first.members.intersects(divergence.members);
    if (alike) {
      first.members.add(divergence.members);
      first.twins.push_back(divergence.group);
    } else {
      folded.push_back(divergence);
    }
  }
  return folded;
}

std::vector<Divergence> without_echoes(const Journal& journal, const std::vector<Divergence>& all) {
  const auto causes = [&](size_t cause, size_t effect) {
    return leads_to(journal, all[cause], all[effect]);
  };
  std::vector<size_t> cause_of(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    cause_of[i] = i;
    for (size_t k = 0; k < all.size() && cause_of[i] == i; ++k) {
      if (k != i && causes(k, i) && (k < i || !causes(i, k))) {
        cause_of[i] = k;
      }
    }
  }
  std::vector<Divergence> first;
  std::vector<size_t> place(all.size(), 0);
  for (size_t i = 0; i < all.size(); ++i) {
    if (cause_of[i] == i) {
      place[i] = first.size();
      first.push_back(all[i]);
    }
  }
  if (first.empty() && !all.empty()) {
    first.push_back(all.front());
    cause_of[0] = 0;
  }
  for (size_t i = 0; i < all.size(); ++i) {
    size_t root = i;
    for (size_t step = 0; cause_of[root] != root && step < all.size(); ++step) {
      root = cause_of[root];
    }
    if (root != i) {
      const CallNumbers numbers(journal, all[i].caller, all[i].communicator);
      first[cause_of[root] == root ? place[root] : 0].echoes.push_back(
          {all[i].group, numbers.of(all[i].call) - 1});
    }
  }
  return first;
}

}  // namespace lockstep
