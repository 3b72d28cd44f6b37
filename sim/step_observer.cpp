#include "sim/step_observer.hpp"

#include "sim/rank_state.hpp"

namespace lockstep::sim {

void mark_step(RankState& rank, StepObserver& observer) {
  const StreamState& stream = rank.stream(compute_stream);
  const TicketRing& tickets = rank.lanes[stream.tail.lane.value]->tickets;
  const bool has_ended = stream.known || tickets.retired(stream.tail.sequence) ||
                         tickets.state(stream.tail.sequence).known();
  if (has_ended) {
    observer.step_ended(static_cast<int32_t>(rank.place.rank.value), *rank.buffers);
  } else {
    rank.marked_steps.push_back(stream.tail);
  }
}

void ticket_ended(RankState& rank, Ticket ticket, StepObserver& observer) {
  for (size_t at = 0; at < rank.marked_steps.size();) {
    if (rank.marked_steps[at] == ticket) {
      rank.marked_steps.erase(rank.marked_steps.begin() + static_cast<ptrdiff_t>(at));
      observer.step_ended(static_cast<int32_t>(rank.place.rank.value), *rank.buffers);
    } else {
      ++at;
    }
  }
}

}  // namespace lockstep::sim
