#pragma once

#include <cstdint>

#include "model/core/units.hpp"
#include "sim/ticket_ring.hpp"

namespace lockstep::sim {

/// What is to be moved between devices: the content of a collective call, of a message, or of a
/// copy.
struct Transfer {
  Time start{};                ///< from when on all that it needs is there
  uint32_t first = no_index;   ///< part; of a message that of the send; of a call a list of members
  uint32_t second = no_index;  ///< of a message the part of the receive
  bool is_collective = false;
};

}  // namespace lockstep::sim
