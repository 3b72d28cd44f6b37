#include "properties/diagnosis/stop_decision.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

namespace lockstep {

namespace {

/// The sites whose decisions say whether a `should_stop` runs, and with which value.
std::set<SiteId> sites_around(const Sites& sites, SiteId statement) {
  std::set<SiteId> around = {statement};
  const Site* inner = sites.find(statement);
  for (int level = 0; inner != nullptr && inner->guard != no_site && level < nesting_max; ++level) {
    around.insert(inner->guard);
    inner = sites.find(inner->guard);
  }
  return around;
}

// The last decision before a row that the other rank took otherwise, of those that are wanted.
template <class IsWanted>
std::optional<Decision> last_that_differs(const Decisions& caller, int64_t row,
                                          const Decisions& other, const IsWanted& is_wanted) {
  const std::vector<Decision>& all = caller.all();
  for (auto mine = all.rbegin(); mine != all.rend(); ++mine) {
    if (mine->row >= row || !is_wanted(mine->site)) {
      continue;
    }
    const Decision* theirs = other.at(mine->site, mine->turn);
    if (theirs != nullptr && theirs->value != mine->value) {
      return *mine;
    }
  }
  return std::nullopt;
}

// Of a `should_stop`: what of its value and of the `if`s around it ranks may see differently.
std::vector<std::string> own_conditions(const Sites& sites, SiteId statement) {
  std::vector<std::string> conditions;
  const Site* inner = sites.find(statement);
  if (inner != nullptr && depends_on_data(inner->condition)) {
    conditions.push_back(inner->condition);
  }
  for (int level = 0; inner != nullptr && inner->guard != no_site && level < nesting_max; ++level) {
    const Site* guard = sites.find(inner->guard);
    if (guard != nullptr && depends_on_data(guard->condition)) {
      conditions.push_back(inner->in_else ? "not (" + guard->condition + ")" : guard->condition);
    }
    inner = guard;
  }
  std::reverse(conditions.begin(), conditions.end());
  return conditions;
}

}  // namespace

std::optional<Decision> decision_to_stop(const Sites& sites, const Decisions& caller, int64_t row,
                                         const Decisions& other) {
  const std::optional<Decision> look = last_that_differs(caller, row, other, [&](SiteId id) {
    const Site* site = sites.find(id);
    return site != nullptr && site->stop == StopRole::looks;
  });
  if (!look) {
    return std::nullopt;
  }
  std::set<SiteId> around;
  std::set<std::string> hooks;
  for (const auto& [id, site] : sites.all()) {
    if (site.stop == StopRole::sets) {
      around.merge(sites_around(sites, id));
      hooks.insert(site.hook);
    }
  }
  if (auto found = last_that_differs(caller, look->row, other,
                                     [&](SiteId site) { return around.count(site) != 0; })) {
    return found;
  }
  const auto in_hook = last_that_differs(caller, look->row, other, [&](SiteId id) {
    const Site* site = sites.find(id);
    return site != nullptr && site->line > 0 && hooks.count(site->hook) != 0;
  });
  return in_hook ? in_hook : look;
}

std::string stop_condition(const Sites& sites, SiteId decision) {
  for (const auto& [id, site] : sites.all()) {
    if (site.stop != StopRole::sets || sites_around(sites, id).count(decision) == 0) {
      continue;
    }
    const std::vector<std::string> conditions = own_conditions(sites, id);
    return conditions.size() == 1 ? conditions.front()
           : conditions.empty()   ? std::string()
                                  : fmt::format("({})", fmt::join(conditions, ") and ("));
  }
  return {};
}

}  // namespace lockstep
