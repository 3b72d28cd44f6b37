#pragma once

#include "model/core/failure.hpp"
#include "model/core/ids.hpp"
#include "model/core/units.hpp"

namespace lockstep {

/// The outcome of a ticket. The world sets it; it does not affect the equality of journals.
struct Completion {
  Time issue{};
  Time start{};
  Time finish{};
  Outcome outcome = Outcome::pending;
  RankId source{};  ///< of a receive
};

}  // namespace lockstep
