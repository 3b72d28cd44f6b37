#include "backend/gloo/rank_host.hpp"

#include <algorithm>
#include <thread>

#include "model/core/ensure.hpp"

namespace lockstep::backend {

RankHost::RankHost(RankState& state, Journal* journal, FingerprintBoard* board)
    : state_(state),
      place_(place_of(state.shared.options, state.rank)),
      stack_(*this, state.shared.options, journal, board),
      lanes_(place_.rank, journal) {}

RankHost::~RankHost() = default;

// The run loop

void RankHost::run(const ProgramOfRank& program_of_rank) {
  const Working working(state_.shared.progress);
  try {
    Program program = program_of_rank(stack_.rank());
    const std::lock_guard lock(state_.mutex);
    add_lane(std::move(program));
  } catch (...) {
    lanes_.not_started(std::current_exception());
  }
  while (Lane* lane = next_lane()) {
    state_.shared.progress.step();
    lanes_.resume(*lane);
  }
  lanes_.clear();
}

Lane& RankHost::add_lane(Program program) {
  Lane& lane = lanes_.add(std::move(program));
  state_.ready.push_back(&lane);
  return lane;
}

Lane* RankHost::next_lane() {
  std::unique_lock lock(state_.mutex);
  for (;;) {
    if (state_.aborted && !lanes_.sealed()) {
      lanes_.seal();
    }
    if (!lanes_.any_live()) {
      return nullptr;
    }
    if (!state_.ready.empty()) {
      Lane* lane = state_.ready.front();
      state_.ready.pop_front();
      return lane;
    }
    const Idle idle(state_.shared.progress);
    state_.host_wakes.wait(lock);
  }
}

// The port

BufferId RankHost::allocate(const BufferSpec& spec) {
  lanes_.refuse_when_sealed();
  const std::lock_guard lock(state_.mutex);
  return state_.buffers.allocate(spec);
}

// Destructors release buffers, also while an abort unwinds the lane and workers still use them.
void RankHost::release(BufferId buffer, SiteId) {
  if (!lanes_.sealed()) {
    const std::lock_guard lock(state_.mutex);
    state_.buffers.release(buffer);
  }
}

void RankHost::write(const Slice& to, const Values& values) {
  lanes_.refuse_when_sealed();
  ensure(values.size() == to.elements && values.dtype() == to.dtype, "a write fits its slice");
  state_.store(to, values);
}

Values RankHost::read(const Slice& from) {
  lanes_.refuse_when_sealed();
  return state_.load(from);
}

void RankHost::wait_begins(std::span<const Ticket>, Until) { lanes_.refuse_when_sealed(); }

bool RankHost::settled(Ticket ticket) const {
  const std::lock_guard lock(state_.mutex);
  return state_.tickets.settled(ticket);
}

void RankHost::resume_when_settled(std::span<const Ticket> tickets, Until until, Lane& lane) {
  const std::lock_guard lock(state_.mutex);
  state_.waiters.push_back({{tickets.begin(), tickets.end()}, until, &lane});
  state_.wake_lanes();
}

Status RankHost::status(Ticket ticket) const {
  const std::lock_guard lock(state_.mutex);
  return state_.tickets.status(ticket);
}

Lane& RankHost::start_lane(Program program) {
  lanes_.refuse_when_sealed();
  const std::lock_guard lock(state_.mutex);
  return add_lane(std::move(program));
}

Ticket RankHost::promise() {
  lanes_.refuse_when_sealed();
  const std::lock_guard lock(state_.mutex);
  return state_.tickets.add(lanes_.current(), state_.shared.progress.now());
}

void RankHost::fulfil(Ticket promise) {
  lanes_.refuse_when_sealed();
  const std::lock_guard lock(state_.mutex);
  state_.fulfil(promise);
}

uint32_t RankHost::choose(SiteId, ChoiceKind, uint32_t, uint32_t local) {
  lanes_.refuse_when_sealed();
  return local;
}

}  // namespace lockstep::backend
