#include "properties/diagnosis/time_limits.hpp"

namespace lockstep {

Time TimeLimits::of(const Communicator& communicator) const {
  if (communicator.key == 0) {
    return world;
  }
  const auto own = given.find(communicator.made_at);
  return own == given.end() ? of_new_groups : own->second;
}

}  // namespace lockstep
