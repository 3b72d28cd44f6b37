#include "sim/roofline_cost.hpp"

#include <algorithm>
#include <cmath>

#include "model/core/ensure.hpp"

namespace lockstep::sim {

namespace {

Bytes bytes_of(std::span<const Slice> slices) {
  Bytes sum;
  for (const Slice& slice : slices) {
    sum += slice.bytes();
  }
  return sum;
}

// Whether a kernel reads what it writes, by the operands that kernel.hpp gives.
bool updates_in_place(const Op& op) {
  switch (op.kernel) {
    case Kernel::sgd_step:
    case Kernel::adam_step:
    case Kernel::qadam_step:
    case Kernel::optimizer_step:
    case Kernel::add:
    case Kernel::add_scaled:
    case Kernel::clip_by_norm:
    case Kernel::clip_by_value:
    case Kernel::unscale:
    case Kernel::orthogonalize: return true;
    case Kernel::scale: return op.list().reads.empty();
    default: return false;
  }
}

}  // namespace

Bytes memory_traffic(const Op& op) {
  if (op.bytes > Bytes{}) {
    return op.bytes;
  }
  const Bytes written = bytes_of(op.list().writes);
  return bytes_of(op.list().reads) + (updates_in_place(op) ? written * 2 : written);
}

RooflineComputeCost::RooflineComputeCost(DeviceModel device, DeviceModel host)
    : device_(std::move(device)), host_(std::move(host)) {}

Time RooflineComputeCost::duration(const Op& op, RankId, Time) const {
  if (op.kernel == Kernel::timed) {
    return Time(op.work);
  }
  const DeviceModel& device = op.stream.device() == host_device ? host_ : device_;
  return roofline_time(device, op.dtype, Flops(op.work), memory_traffic(op));
}

SlowedComputeCost::SlowedComputeCost(std::unique_ptr<ComputeCost> full_speed,
                                     std::vector<Straggler> stragglers)
    : full_speed_(std::move(full_speed)) {
  for (const Straggler& straggler : stragglers) {
    ensure(straggler.rank >= 0 && straggler.slowdown > 0, "a straggler is slower by a factor");
    const auto rank = static_cast<size_t>(straggler.rank);
    by_rank_.resize(std::max(by_rank_.size(), rank + 1));
    by_rank_[rank].intervals.push_back({straggler});
  }
  for (RankPaces& of : by_rank_) {
    for (Interval& interval : of.intervals) {
      if (interval.straggler.at.kind == Instant::Kind::time) {
        begin(of, interval, interval.straggler.at.time);
      }
    }
  }
}

void SlowedComputeCost::begin(RankPaces& of, Interval& interval, Time from) {
  interval.begun = true;
  interval.from = from;
  const Time duration = interval.straggler.duration;
  interval.until = duration < Time::max() - from ? from + duration : Time::max();
  set_paces(of);
}

void SlowedComputeCost::set_paces(RankPaces& of) {
  std::vector<Pace>& paces = of.paces;
  paces.clear();
  for (const Interval& interval : of.intervals) {
    if (interval.begun) {
      paces.push_back({interval.from, 1});
      paces.push_back({interval.until, 1});
    }
  }
  std::sort(paces.begin(), paces.end(),
            [](const Pace& a, const Pace& b) { return a.from < b.from; });
  for (Pace& pace : paces) {
    for (const Interval& interval : of.intervals) {
      if (interval.begun && interval.from <= pace.from && pace.from < interval.until) {
        pace.slowdown *= interval.straggler.slowdown;
      }
    }
  }
}

void SlowedComputeCost::reached(RankId rank, const Position& position, Time now) {
  if (rank.value >= by_rank_.size()) {
    return;
  }
  RankPaces& of = by_rank_[rank.value];
  for (Interval& interval : of.intervals) {
    if (!interval.begun && interval.straggler.at.has_come(position, now)) {
      begin(of, interval, now);
    }
  }
}

std::set<std::pair<int32_t, int32_t>> SlowedComputeCost::struck() const {
  std::set<std::pair<int32_t, int32_t>> numbers;
  for (const RankPaces& of : by_rank_) {
    for (const Interval& interval : of.intervals) {
      if (interval.struck) {
        numbers.emplace(interval.straggler.number, interval.straggler.rank);
      }
    }
  }
  return numbers;
}

bool SlowedComputeCost::observes_positions() const {
  return std::ranges::any_of(by_rank_, [](const RankPaces& of) {
    return std::ranges::any_of(of.intervals, [](const Interval& interval) {
      return interval.straggler.at.kind != Instant::Kind::time;
    });
  });
}

Time SlowedComputeCost::duration(const Op& op, RankId rank, Time start) const {
  Time work = full_speed_->duration(op, rank, start);
  if (rank.value >= by_rank_.size() || by_rank_[rank.value].paces.empty()) {
    return work;
  }
  RankPaces& of = by_rank_[rank.value];
  Time now = start;
  double slowdown = 1;
  for (const Pace& pace : of.paces) {
    if (pace.from > now) {
      // Compared as doubles: a slow time may leave the range of Time, a finished one does not.
      if (static_cast<double>(work.count()) * slowdown <=
          static_cast<double>((pace.from - now).count())) {
        break;
      }
      const double done = static_cast<double>((pace.from - now).count()) / slowdown;
      work = std::max(Time{}, work - Time(std::llround(done)));
      now = pace.from;
    }
    slowdown = pace.slowdown;
  }
  const Time finish = now + Time(std::llround(static_cast<double>(work.count()) * slowdown));
  for (Interval& interval : of.intervals) {
    interval.struck |= interval.begun && start < interval.until && interval.from < finish;
  }
  return finish - start;
}

}  // namespace lockstep::sim
