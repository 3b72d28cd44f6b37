#include "cli/render/over_time/memory_over_time.hpp"

#include <algorithm>
#include <utility>

namespace lockstep::cli {

namespace {

Bytes most_of(const std::map<DeviceId, Bytes>& held) {
  Bytes most{};
  for (const auto& [device, bytes] : held) {
    most = std::max(most, bytes);
  }
  return most;
}

}  // namespace

MemoryOverTime::MemoryOverTime(const Journal& journal, int32_t rank,
                               const std::vector<LeftOutStretch>& stretches)
    : stretches_(stretches) {
  std::map<DeviceId, Bytes> held;
  std::map<int32_t, std::pair<DeviceId, Bytes>> buffers;
  const LaneJournal& lane = journal.lane(rank, 0);
  bool has_changed = false;
  marks_.push_back({});
  lane.for_each([&](const Row& row) {
    if (row.row == RowKind::allocate && !is_off_device(row.stream.device())) {
      buffers[row.tag] = {row.stream.device(), Bytes(row.bytes)};
      held[row.stream.device()] += Bytes(row.bytes);
      has_changed = true;
    } else if (row.row == RowKind::release) {
      if (const auto buffer = buffers.find(row.tag); buffer != buffers.end()) {
        held[buffer->second.first] -= buffer->second.second;
        buffers.erase(buffer);
        has_changed = true;
      }
    } else if (row.row == RowKind::op && row.kind != OpKind::event && has_changed) {
      const Completion done = lane.completion(row.sequence);
      if (done.outcome == Outcome::ok) {
        const Time clock = row.kind == OpKind::host ? done.start : done.issue;
        marks_.push_back({std::max(clock, marks_.back().at), most_of(held)});
        has_changed = false;
      }
    }
  });
}

Bytes MemoryOverTime::at(Time moment) const {
  const auto behind =
      std::upper_bound(marks_.begin(), marks_.end(), simulated_moment(stretches_, moment),
                       [](Time now, const Mark& mark) { return now < mark.at; });
  return std::prev(behind)->held;
}

}  // namespace lockstep::cli
