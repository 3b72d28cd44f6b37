#pragma once

#include <cstdint>

#include "rehearsal/rehearsal.hpp"

namespace lockstep::cli {

/// How a case ended, as far as its prediction goes.
enum class Outcome : uint8_t {
  predicted,  ///< it came to its end, and its figures are a prediction
  refused,    ///< by the framework
  invalid,
  unsupported,
  undecided,
  out_of_memory,  ///< of a device or a host
  hangs,
  raises,
};
Outcome outcome_of(const Rehearsal& rehearsal);

}  // namespace lockstep::cli
