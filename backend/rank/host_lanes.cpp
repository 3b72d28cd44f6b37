#include "backend/rank/host_lanes.hpp"

#include <utility>

namespace lockstep::backend {

Lane& HostLanes::add(Program program) {
  const LaneId id{static_cast<uint16_t>(lanes_.size())};
  lanes_.push_back(std::make_unique<Lane>(rank_, id, std::move(program)));
  ++live_;
  return *lanes_.back();
}

void HostLanes::resume(Lane& lane) {
  current_ = lane.id();
  lane.resume();
  if (lane.done()) {
    ended(lane);
  }
}

void HostLanes::ended(Lane& lane) {
  RankEnd end = end_of(lane.failure());
  --live_;
  if (sealed_) {
    end.kind = RankEnd::Kind::stuck;  // whatever the program made of being unwound
  }
  if (end.kind == RankEnd::Kind::lost && !sealed_) {
    seal();
    live_ = 0;
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

void HostLanes::record_end(LaneId lane, const RankEnd& end) {
  Row row;
  row.row = end.kind == RankEnd::Kind::finished ? RowKind::finish : RowKind::raise;
  row.site = end.site;
  journal_->append(static_cast<int32_t>(rank_.value), lane, row);
}

void HostLanes::clear() {
  lanes_.clear();
  if (journal_ != nullptr && sealed_) {
    const auto rank = static_cast<int32_t>(rank_.value);
    for (size_t lane = 0; lane < sealed_rows_.size(); ++lane) {
      journal_->lane(rank, LaneId{static_cast<uint16_t>(lane)}).truncate(sealed_rows_[lane]);
    }
  }
}

void HostLanes::seal() {
  sealed_ = true;
  if (journal_ != nullptr) {
    const auto rank = static_cast<int32_t>(rank_.value);
    for (int32_t lane = 0; lane < journal_->lanes(rank); ++lane) {
      sealed_rows_.push_back(std::as_const(*journal_).lane(rank, lane).size());
    }
  }
}

void HostLanes::refuse_when_sealed() const {
  if (sealed_) {
    throw RankFailure(Ticket{}, Outcome::aborted, "the run was aborted");
  }
}

}  // namespace lockstep::backend
