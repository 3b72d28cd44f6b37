#include "properties/diagnosis/silent_exchange.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>

#include "properties/diagnosis/call_meaning.hpp"

namespace lockstep {

namespace {

constexpr size_t none = std::numeric_limits<size_t>::max();

bool mixes_keys(const Sites& sites, const Call& left, const Call& right) {
  const Site* const a = sites.find(left.site);
  const Site* const b = sites.find(right.site);
  return a != nullptr && b != nullptr && !a->logged_key.empty() && !b->logged_key.empty() &&
         a->logged_key != b->logged_key;
}

}  // namespace

std::optional<SilentExchange> silent_exchange(const Sites& sites,
                                              const std::vector<MemberClass>& classes,
                                              size_t pairs_max) {
  const MemberClass& reference = classes.front();
  for (size_t i = 1; i < std::min(classes.size(), pairs_max + 1); ++i) {
    const MemberClass& other = classes[i];
    std::multiset<uint64_t> here;
    std::multiset<uint64_t> there;
    size_t first = none;
    size_t mixed = none;
    for (size_t k = 0; k < reference.calls.size(); ++k) {
      const OpKind kind = reference.calls[k].kind;
      if (kind == OpKind::barrier || kind == OpKind::new_group) {
        continue;
      }
      const uint64_t mine = meaning_of(sites, reference.calls[k]);
      const uint64_t theirs = meaning_of(sites, other.calls[k]);
      here.insert(mine);
      there.insert(theirs);
      first = first == none && mine != theirs ? k : first;
      mixed = mixed == none && mixes_keys(sites, reference.calls[k], other.calls[k]) ? k : mixed;
    }
    const bool exchanged = first != none && here == there;
    if (exchanged || mixed != none) {
      return SilentExchange{i, exchanged ? first : mixed, exchanged};
    }
  }
  return std::nullopt;
}

}  // namespace lockstep
