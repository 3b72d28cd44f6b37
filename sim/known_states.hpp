#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "sim/rank_state.hpp"
#include "sim/state_words.hpp"

namespace lockstep::sim {

/// States in which periods of one level began, and which of them led to which.
class KnownStates {
 public:
  /// A period of these kinds (its own, and those of later ones that some rank had begun before it
  /// ended) led to a state.
  struct Transition {
    std::vector<int64_t> kinds;
    size_t to = 0;
    int64_t number = 0;  ///< of the last period that did
    Time begin{};        ///< of that one
    Time time{};         ///< that it takes
    bool is_proven = false;
  };
  /// What follows one another, and how many periods of it lead back to where they begin.
  struct Way {
    std::vector<Transition> transitions;  ///< until the periods that are asked for, then a cycle
    int64_t before = 0;                   ///< transitions that come before the cycle
    int64_t times = 1;                    ///< how often the cycle may be taken

    int64_t cycle() const { return static_cast<int64_t>(transitions.size()) - before; }
  };

  /// The number of a state, which is remembered. Numbers of others may be forgotten: `is_new` where
  /// all were.
  size_t number_of(StateWords words);
  /// How often all have been forgotten, so that numbers from before mean nothing.
  int64_t forgotten() const { return forgotten_; }
  void note(size_t from, Transition transition);
  /// The longest cycle through the state that `before` periods lead to, of at most `most` periods.
  /// `kind_of`: of the periods to come, of which `known` have a kind. `uniform`: all are of one.
  template <class KindOf>
  std::optional<Way> way(size_t from, int64_t before, int64_t most, int64_t known, bool uniform,
                         const KindOf& kind_of) const;

 private:
  struct State {
    StateWords words;
    size_t hash = 0;
    std::vector<Transition> transitions;
  };
  template <class KindOf>
  const Transition* transition(size_t from, int64_t at, int64_t known, const KindOf& kind_of) const;

  std::deque<State> states_;
  size_t bytes_ = 0;
  int64_t forgotten_ = 0;
};

template <class KindOf>
const KnownStates::Transition* KnownStates::transition(size_t from, int64_t at, int64_t known,
                                                       const KindOf& kind_of) const {
  for (const Transition& each : states_[from].transitions) {
    bool fits = each.is_proven && at + std::ssize(each.kinds) <= known;
    for (int64_t later = 0; fits && later < std::ssize(each.kinds); ++later) {
      fits = kind_of(at + later) == each.kinds[static_cast<size_t>(later)];
    }
    if (fits) {
      return &each;
    }
  }
  return nullptr;
}

template <class KindOf>
std::optional<KnownStates::Way> KnownStates::way(size_t from, int64_t before, int64_t most,
                                                 int64_t known, bool uniform,
                                                 const KindOf& kind_of) const {
  constexpr int64_t longest = 1 << 16;         // of periods of several kinds
  constexpr int64_t longest_of_one_kind = 64;  // ranks that do the same may take turns
  const int64_t end = before + std::min(most, uniform ? longest_of_one_kind : longest);
  Way way{{}, before, 1};
  size_t cycle_begin = from;
  size_t kept = 0;
  size_t state = from;
  for (int64_t at = 0; at < end; ++at) {
    if (at == before) {
      cycle_begin = state;
    }
    const Transition* const next = transition(state, at, known, kind_of);
    if (next == nullptr) {
      break;
    }
    way.transitions.push_back(*next);
    state = next->to;
    if (at + 1 > before && state == cycle_begin) {
      kept = way.transitions.size();
      if (uniform) {
        break;
      }
    }
  }
  if (kept == 0) {
    return std::nullopt;
  }
  way.transitions.resize(kept);
  way.times = uniform ? most / way.cycle() : 1;
  return way.times > 0 ? std::optional(std::move(way)) : std::nullopt;
}

}  // namespace lockstep::sim
