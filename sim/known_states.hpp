#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "model/core/units.hpp"
#include "model/program/repetition.hpp"
#include "sim/state_trail.hpp"
#include "sim/state_words.hpp"

namespace lockstep::sim {

/// States in which periods of one level began, and which of them led to which.
class KnownStates {
 public:
  /// A period of these kinds (its own, and those of later ones that decided what it did, as some
  /// rank had begun them before it ended) led to a state.
  struct Transition {
    std::vector<int64_t> kinds;
    size_t to = 0;
    int64_t number = 0;               ///< of the last period that did
    int64_t first_number = 0;         ///< of the first of those that all did so
    Time begin{};                     ///< of that one
    Time time{};                      ///< that it takes
    bool is_behind_left_out = false;  ///< that one began where others had been left out
    bool is_proven = false;
    /// How many periods before it belong to it: some rank was ahead of rank 0 when it began, and
    /// what that did in it before came of the transitions until then; or PeriodStart::reaches_back.
    int64_t ahead = 0;
    std::optional<uint64_t> came_by{};  ///< StateTrail::last() of so many
  };
  /// Transitions that follow one another: some, then a cycle that leads back to where it begins.
  struct Way {
    struct Taken {
      const Transition* transition = nullptr;  ///< until the next is noted
      int64_t times = 1;                       ///< one after the other
    };
    std::vector<Taken> before;
    std::vector<Taken> cycle;
    size_t state = 0;     ///< in which the cycle begins
    int64_t periods = 0;  ///< of the cycle
    int64_t turns = 1;    ///< how often it may be taken
  };

  /// The number of a state, which is remembered. Of many states, or large ones, those that have not
  /// come for the longest time are forgotten; their numbers are not given again.
  size_t number_of(StateWords words);
  /// Whether they take so much memory that few of them are kept.
  bool are_large() const;
  void note(size_t from, Transition transition);
  /// As StateTrail::add() takes it.
  static uint64_t key_of(size_t from, const std::vector<int64_t>& kinds);
  /// The longest cycle through the state that `before` periods lead to, of at most `most` periods.
  /// `trail`: to the present state.
  std::optional<Way> way(size_t from, const PeriodStart& start, int64_t before, int64_t most,
                         StateTrail trail = {}) const;

 private:
  struct State {
    StateWords words;
    size_t hash = 0;
    std::vector<Transition> transitions;
    size_t last_asked = 0;
  };
  void forget_some();
  /// `trail`: null: that of no period that is repeated.
  const Transition* transition(size_t from, const PeriodStart& start, int64_t at,
                               const StateTrail* trail) const;

  std::map<size_t, State> states_;  ///< by number
  size_t next_ = 0;
  size_t asked_ = 0;
  size_t bytes_ = 0;
};

}  // namespace lockstep::sim
