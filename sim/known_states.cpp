#include "sim/known_states.hpp"

#include <algorithm>

namespace lockstep::sim {

namespace {

constexpr size_t states_max = 64;
constexpr size_t bytes_max = size_t{32} << 20;
constexpr size_t states_min = 8;

}  // namespace

size_t KnownStates::number_of(StateWords words) {
  const size_t hash = words.hash();
  for (size_t number = 0; number < states_.size(); ++number) {
    if (states_[number].hash == hash && states_[number].words == words) {
      return number;
    }
  }
  if (states_.size() >= states_max || (bytes_ > bytes_max && states_.size() >= states_min)) {
    states_.clear();
    bytes_ = 0;
    ++forgotten_;
  }
  words.trim();
  bytes_ += words.size_bytes();
  states_.push_back({std::move(words), hash, {}});
  return states_.size() - 1;
}

// One that leads elsewhere than before is not believed: something decides that no state describes.
void KnownStates::note(size_t from, Transition transition) {
  std::vector<Transition>& all = states_[from].transitions;
  const auto known = std::ranges::find(all, transition.kinds, &Transition::kinds);
  if (known == all.end()) {
    all.push_back(std::move(transition));
    return;
  }
  const bool is_same = known->to == transition.to && known->time == transition.time;
  transition.is_proven = is_same && (transition.is_proven || known->is_proven);
  *known = std::move(transition);
}

}  // namespace lockstep::sim
