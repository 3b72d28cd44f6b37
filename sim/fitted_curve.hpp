#pragma once

#include <optional>
#include <vector>

#include "model/cluster/calibration.hpp"

namespace lockstep::sim {

/// time = overhead + flops * per_flop + bytes * per_byte, each at least 0, in seconds.
struct KernelFit {
  double overhead = 0;
  double per_flop = 0;
  double per_byte = 0;

  double seconds(Flops flops, Bytes traffic) const;
};

inline constexpr size_t fewest_points = 3;

/// The least squares of relative errors over the medians, with no negative coefficient (the best of
/// the ordinary solutions over each subset of coefficients; Lawson and Hanson 1974, chapter 23).
/// Points that took no time are left out. Nothing for fewer points than `fewest_points`.
std::optional<KernelFit> fit(const std::vector<KernelPoint>& points);

/// Seconds at `bytes`: straight lines between the medians; the first point's time before it, the
/// last line's slope behind the last point. `points` are not empty and rise.
double interpolate(const std::vector<TransferPoint>& points, Bytes bytes);

/// By how much predicted times are to be multiplied for the ends of their range.
struct RangeFactors {
  double low = 1;   ///< at most 1
  double high = 1;  ///< at least 1
};
/// The 5 % and 95 % quantiles (nearest rank) of measured over predicted of what was held out,
/// and 1. Without any: 1 and 1.
RangeFactors range_of(const std::vector<HeldOut>& held_out, HeldOut::Part part);

}  // namespace lockstep::sim
