#pragma once

#include <cstdint>

#include "model/program/buffer_table.hpp"

namespace lockstep::sim {

struct RankState;

/// Sees what a rank holds after each of its optimizer steps.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  /// Called once everything that the rank had submitted to its compute stream up to the mark of a
  /// step has ended, and before anything behind it begins there; of one rank in the order of steps.
  virtual void step_ended(int32_t rank, const BufferTable& buffers) = 0;
};

/// The rank marks a step: `observer` sees it now or when ticket_ended() says so.
void mark_step(RankState& rank, StepObserver& observer);
/// Said when a ticket has ended for which RankState::marked_steps waits.
void ticket_ended(RankState& rank, Ticket ticket, StepObserver& observer);

}  // namespace lockstep::sim
