#include "backend/gloo/rank_host.hpp"

#include <algorithm>
#include <thread>

#include "model/core/ensure.hpp"

namespace lockstep::backend {

RankHost::RankHost(RankState& state, Journal* journal, FingerprintBoard* board)
    : state_(state),
      journal_(journal),
      place_(place_of(state.shared.options, state.rank)),
      stack_(*this, state.shared.options, journal, board) {}

RankHost::~RankHost() = default;

// The run loop

void RankHost::run(const ProgramOfRank& program_of_rank) {
  const Working working(state_.shared.progress);
  try {
    Program program = program_of_rank(stack_.rank());
    const std::lock_guard lock(state_.mutex);
    add_lane(std::move(program));
  } catch (...) {
    end_ = end_of(std::current_exception());
  }
  while (Lane* lane = next_lane()) {
    resume(*lane);
  }
  lanes_.clear();
  if (journal_ != nullptr && sealed_) {
    for (size_t lane = 0; lane < sealed_rows_.size(); ++lane) {
      journal_->lane(state_.rank, LaneId{static_cast<uint16_t>(lane)}).truncate(sealed_rows_[lane]);
    }
  }
}

Lane& RankHost::add_lane(Program program) {
  const LaneId id{static_cast<uint16_t>(lanes_.size())};
  lanes_.push_back(std::make_unique<Lane>(place_.rank, id, std::move(program)));
  ++live_lanes_;
  state_.ready.push_back(lanes_.back().get());
  return *lanes_.back();
}

Lane* RankHost::next_lane() {
  std::unique_lock lock(state_.mutex);
  for (;;) {
    if (state_.aborted && !sealed_) {
      seal();
    }
    if (live_lanes_ == 0) {
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

void RankHost::resume(Lane& lane) {
  state_.shared.progress.step();
  current_lane_ = lane.id();
  lane.resume();
  if (lane.done()) {
    lane_ended(lane);
  }
}

void RankHost::lane_ended(Lane& lane) {
  RankEnd end = end_of(lane.failure());
  --live_lanes_;
  if (sealed_) {
    end.kind = RankEnd::Kind::stuck;  // whatever the program made of being unwound
  }
  if (end.kind == RankEnd::Kind::lost && !sealed_) {
    // A lost rank falls silent as a whole.
    seal();
    live_lanes_ = 0;
    end_ = end;
  }
  const bool broke = end.kind == RankEnd::Kind::raised || end.kind == RankEnd::Kind::failed;
  if (lane.id() == LaneId{0} || broke) {
    end_ = end;
  }
  if (journal_ != nullptr && !sealed_) {
    record_end(lane.id(), end);
  }
}

void RankHost::record_end(LaneId lane, const RankEnd& end) {
  Row row;
  row.row = end.kind == RankEnd::Kind::finished ? RowKind::finish : RowKind::raise;
  row.site = end.site;
  journal_->append(state_.rank, lane, row);
}

void RankHost::seal() {
  sealed_ = true;
  if (journal_ != nullptr) {
    for (int32_t lane = 0; lane < journal_->lanes(state_.rank); ++lane) {
      sealed_rows_.push_back(std::as_const(*journal_).lane(state_.rank, lane).size());
    }
  }
}

void RankHost::refuse_when_sealed() const {
  if (sealed_) {
    throw RankFailure(Ticket{}, Outcome::aborted, "the run was aborted");
  }
}

// The port

BufferId RankHost::allocate(const BufferSpec& spec) {
  refuse_when_sealed();
  const std::lock_guard lock(state_.mutex);
  return state_.buffers.allocate(spec);
}

// Destructors release buffers, also while an abort unwinds the lane and workers still use them.
void RankHost::release(BufferId buffer) {
  if (!sealed_) {
    const std::lock_guard lock(state_.mutex);
    state_.buffers.release(buffer);
  }
}

void RankHost::write(const Slice& to, const Values& values) {
  refuse_when_sealed();
  ensure(values.size() == to.elements && values.dtype() == to.dtype, "a write fits its slice");
  state_.store(to, values);
}

Values RankHost::read(const Slice& from) {
  refuse_when_sealed();
  return state_.load(from);
}

void RankHost::wait_begins(std::span<const Ticket>, Until) { refuse_when_sealed(); }

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
  refuse_when_sealed();
  const std::lock_guard lock(state_.mutex);
  return add_lane(std::move(program));
}

Ticket RankHost::promise() {
  refuse_when_sealed();
  const std::lock_guard lock(state_.mutex);
  return state_.tickets.add(current_lane_, state_.shared.progress.now());
}

void RankHost::fulfil(Ticket promise) {
  refuse_when_sealed();
  const std::lock_guard lock(state_.mutex);
  state_.fulfil(promise);
}

uint32_t RankHost::choose(SiteId, ChoiceKind, uint32_t, uint32_t local) {
  refuse_when_sealed();
  return local;
}

}  // namespace lockstep::backend
