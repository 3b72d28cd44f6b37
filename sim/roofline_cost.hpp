#pragma once

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "model/cluster/device.hpp"
#include "model/core/instant.hpp"
#include "sim/cost.hpp"

namespace lockstep::sim {

/// The bytes of device memory that a kernel reads and writes: Op::bytes where the caller states
/// them, else its operands. An operand that is updated in place is read and written.
Bytes memory_traffic(const Op& op);

/// Kernels by the roofline (Williams, Waterman, Patterson 2009): the longer of Op::work FLOPs at
/// the device's speed on Op::dtype and of the memory traffic at its memory bandwidth, each with the
/// device model's efficiency. Kernels that say their own time (Kernel::timed) take that.
/// Matrix products on fp32 count at the fp32 peak, not at TF32's.
class RooflineComputeCost final : public ComputeCost {
 public:
  /// `host` computes what is put into streams of host_device: the share of one rank.
  RooflineComputeCost(DeviceModel device, DeviceModel host);
  Time duration(const Op& op, RankId rank, Time start) const override;

 private:
  DeviceModel device_;
  DeviceModel host_;
};

/// A rank that computes `slowdown` times slower for `duration`, from `at` on: of a step or an
/// epoch, from when that rank's host begins it.
struct Straggler {
  int32_t rank = 0;
  double slowdown = 1;  ///< > 0
  Instant at{};
  Time duration = Time::max();
  int32_t number = 0;  ///< the caller's own, for SlowedComputeCost::struck
};

/// Compute cost with stragglers. Work that runs into or out of a slow interval is slow for just
/// that part; intervals of one rank that overlap multiply.
class SlowedComputeCost final : public ComputeCost, public PositionObserver {
 public:
  SlowedComputeCost(std::unique_ptr<ComputeCost> full_speed, std::vector<Straggler> stragglers);
  Time duration(const Op& op, RankId rank, Time start) const override;
  void reached(RankId rank, const Position& position, Time now) override;
  /// Numbers and ranks of the stragglers that slowed something.
  std::set<std::pair<int32_t, int32_t>> struck() const;
  /// Some straggler begins where its rank comes to a position.
  bool observes_positions() const;

 private:
  struct Interval {
    Straggler straggler;
    bool begun = false;
    Time from{};
    Time until{};
    bool struck = false;
  };
  /// From here until the next pace of the same rank.
  struct Pace {
    Time from{};
    double slowdown = 1;
  };
  struct RankPaces {
    std::vector<Interval> intervals;  ///< `struck` is noted where a duration is asked
    std::vector<Pace> paces;          ///< in order of time; empty: none has begun
  };
  static void begin(RankPaces& of, Interval& interval, Time from);
  static void set_paces(RankPaces& of);

  std::unique_ptr<ComputeCost> full_speed_;
  mutable std::vector<RankPaces> by_rank_;
};

}  // namespace lockstep::sim
