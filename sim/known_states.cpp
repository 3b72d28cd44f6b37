#include "sim/known_states.hpp"

#include <algorithm>
#include <utility>

#include "model/core/random.hpp"

namespace lockstep::sim {

namespace {

constexpr size_t states_max = 64;
constexpr size_t bytes_max = size_t{16} << 20;
constexpr size_t states_min = 4;
constexpr int64_t trails_max = 64;  // of a state and kinds: there may be one for each period
constexpr int64_t transitions_max = 1 << 16;     // of a way
constexpr int64_t transitions_of_kind_max = 64;  // where all are of one: ranks may take turns

}  // namespace

size_t KnownStates::number_of(StateWords words) {
  const size_t hash = words.hash();
  ++asked_;
  for (auto& [number, state] : states_) {
    if (state.hash == hash && state.words == words) {
      state.last_asked = asked_;
      return number;
    }
  }
  words.trim();
  bytes_ += words.size_bytes();
  states_.emplace(next_, State{std::move(words), hash, {}, asked_});
  forget_some();
  return next_++;
}

bool KnownStates::are_large() const { return bytes_ > bytes_max; }

void KnownStates::forget_some() {
  while (states_.size() > states_max || (are_large() && states_.size() > states_min)) {
    const auto oldest = std::ranges::min_element(
        states_, {}, [](const auto& each) { return each.second.last_asked; });
    bytes_ -= oldest->second.words.size_bytes();
    states_.erase(oldest);
  }
}

uint64_t KnownStates::key_of(size_t from, const std::vector<int64_t>& kinds) {
  uint64_t key = from;
  for (const int64_t kind : kinds) {
    key = random_key(key, static_cast<uint64_t>(kind));
  }
  return key;
}

// One that leads elsewhere than before is not believed: something decides that no state describes.
// Where ranks are ahead there is one for each trail.
void KnownStates::note(size_t from, Transition transition) {
  const auto state = states_.find(from);
  if (state == states_.end()) {
    return;
  }
  std::vector<Transition>& all = state->second.transitions;
  const auto is_of_kinds = [&](const Transition& each) { return each.kinds == transition.kinds; };
  const bool differs = std::ranges::any_of(all, [&](const Transition& each) {
    return is_of_kinds(each) && (each.to != transition.to || each.time != transition.time);
  });
  if (differs) {
    std::erase_if(all, is_of_kinds);
  }
  transition.is_proven =
      !differs && (transition.is_proven || std::ranges::any_of(all, [&](const Transition& each) {
                     return is_of_kinds(each) && each.is_proven;
                   }));
  const auto known = std::ranges::find_if(all, [&](const Transition& each) {
    return is_of_kinds(each) && each.ahead == transition.ahead &&
           each.came_by == transition.came_by;
  });
  if (known == all.end()) {
    if (std::ranges::count_if(all, is_of_kinds) == trails_max) {
      all.erase(std::ranges::find_if(all, is_of_kinds));
    }
    all.push_back(std::move(transition));
    return;
  }
  transition.first_number = known->first_number;
  *known = std::move(transition);
}

const KnownStates::Transition* KnownStates::transition(size_t from, const PeriodStart& start,
                                                       int64_t at, const StateTrail* trail) const {
  const auto state = states_.find(from);
  if (state == states_.end()) {
    return nullptr;
  }
  for (const Transition& each : state->second.transitions) {
    const bool comes_so = trail == nullptr || each.ahead == 0 ||
                          (each.came_by && each.came_by == trail->last(each.ahead));
    bool fits = each.is_proven && comes_so && at + std::ssize(each.kinds) <= start.alike;
    for (int64_t later = 0; fits && later < std::ssize(each.kinds); ++later) {
      fits = start.kind_of(at + later) == each.kinds[static_cast<size_t>(later)];
    }
    if (fits) {
      return &each;
    }
  }
  return nullptr;
}

namespace {

// A period that was never seen may ask what the one before it did, as an epoch that raises leaves
// the checkpoint of the last: that one is run.
void keep_last(KnownStates::Way& way, std::vector<std::pair<size_t, int64_t>>& returns) {
  if (way.cycle.back().times > 1) {  // each of them returns
    --way.cycle.back().times;
    --way.periods;
    return;
  }
  returns.pop_back();
  way.periods = returns.empty() ? 0 : returns.back().second;
  way.cycle.resize(returns.empty() ? 0 : returns.back().first);
}

}  // namespace

std::optional<KnownStates::Way> KnownStates::way(size_t from, const PeriodStart& start,
                                                 int64_t before, int64_t most,
                                                 StateTrail trail) const {
  const bool uniform = start.kinds == nullptr;
  const int64_t transitions = uniform ? transitions_of_kind_max : transitions_max;
  Way way;
  size_t state = from;
  size_t begin = from;
  std::vector<std::pair<size_t, int64_t>> returns;  // transitions and periods until then
  int64_t at = 0;
  int64_t ahead_of_first = 0;  // that is left out
  std::optional<uint64_t> came_by;
  for (int64_t taken = 0; taken < transitions && at < before + most; ++taken) {
    const Transition* const next =
        transition(state, start, at, at < before ? nullptr : &trail);  // those before are run
    if (next == nullptr) {
      break;
    }
    if (at == before) {
      begin = state;
      ahead_of_first = next->ahead;
      came_by = trail.last(ahead_of_first);
    }
    const auto ahead = std::ssize(next->kinds) - 1;
    const int64_t end = at < before ? before : before + most;
    const int64_t alike = std::min(start.alike_from(at), start.alike - at) - ahead;
    const uint64_t key = key_of(state, next->kinds);
    trail.add(key);
    const bool stays = next->to == state && (next->ahead == 0 || at < before ||
                                             trail.last(next->ahead) == next->came_by);
    const int64_t times = stays ? std::clamp<int64_t>(alike, 1, end - at) : 1;
    for (int64_t turn = 1; turn < std::min(times, StateTrail::kept); ++turn) {
      trail.add(key);
    }
    (at < before ? way.before : way.cycle).push_back({next, times});
    at += times;
    state = next->to;
    if (at > before && state == begin && trail.last(ahead_of_first) == came_by) {
      returns.emplace_back(way.cycle.size(), at - before);
      if (uniform) {
        break;
      }
    }
  }
  if (returns.empty()) {
    return std::nullopt;
  }
  way.state = begin;
  way.periods = returns.back().second;
  way.cycle.resize(returns.back().first);
  if (!uniform && start.level == period_level::epochs &&
      transition(begin, start, before + way.periods, nullptr) == nullptr) {
    keep_last(way, returns);
  }
  way.turns = uniform ? most / way.periods : 1;
  return way.periods > 0 && way.turns > 0 ? std::optional(std::move(way)) : std::nullopt;
}

}  // namespace lockstep::sim
