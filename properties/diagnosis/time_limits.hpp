#pragma once

#include <map>

#include "model/core/site.hpp"
#include "model/core/units.hpp"
#include "properties/diagnosis/calls.hpp"

namespace lockstep {

/// How long calls may take, by group: what init_process_group was given holds for the world alone.
struct TimeLimits {
  Time world{};
  Time of_new_groups{};            ///< where new_group was given none: torch's default
  std::map<SiteId, Time> given{};  ///< by the place of the new_group

  Time of(const Communicator& communicator) const;
};

}  // namespace lockstep
