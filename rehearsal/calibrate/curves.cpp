// From samples to curves, and how far they would have been wrong.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "rehearsal/calibrate/samples.hpp"
#include "sim/fitted_curve.hpp"

namespace lockstep::cli {

namespace {

Time time_of(double seconds_long) { return Time(std::llround(seconds_long * 1e12)); }

bool alike(const KernelCurve& left, const KernelCurve& right) {
  return left.kernel == right.kernel && left.layer == right.layer && left.dtype == right.dtype &&
         left.ranks == right.ranks;
}

/// What one step took in all, and would have been said to take.
struct StepSum {
  Time measured{};
  Time predicted{};
};

}  // namespace

std::vector<KernelCurve> Samples::curves(std::optional<int32_t> without_training) const {
  std::map<KernelKey, std::vector<Time>> by_key;
  for (const KernelSample& sample : kernels_) {
    if (sample.training != without_training) {
      by_key[sample.key].push_back(sample.duration);
    }
  }
  std::vector<KernelCurve> curves;
  for (auto& [key, times] : by_key) {
    const KernelCurve curve{key.kernel, key.layer, key.dtype, key.ranks, {}};
    if (curves.empty() || !alike(curves.back(), curve)) {
      curves.push_back(curve);
    }
    curves.back().points.push_back({key.flops, key.traffic, percentiles(std::move(times))});
  }
  return curves;
}

// Kernels that the other trainings did not measure are left out of both sums.
void Samples::hold_out_kernels(int32_t training, std::vector<HeldOut>& held_out) const {
  using Key = std::tuple<Kernel, std::optional<LayerKind>, DType, int32_t>;
  std::map<Key, sim::KernelFit> fits;
  for (const KernelCurve& curve : curves(training)) {
    if (const std::optional<sim::KernelFit> fitted = sim::fit(curve.points)) {
      fits[{curve.kernel, curve.layer, curve.dtype, curve.ranks}] = *fitted;
    }
  }
  std::map<std::pair<int32_t, int32_t>, StepSum> sums;  // by rank and step
  for (const KernelSample& sample : kernels_) {
    const KernelKey& key = sample.key;
    const auto known = fits.find({key.kernel, key.layer, key.dtype, key.ranks});
    if (sample.training == training && known != fits.end()) {
      StepSum& sum = sums[{sample.rank, sample.step}];
      sum.measured += sample.duration;
      sum.predicted += time_of(known->second.seconds(key.flops, key.traffic));
    }
  }
  for (const auto& [place, sum] : sums) {
    held_out.push_back({HeldOut::Part::compute, trainings_[static_cast<size_t>(training)],
                        sum.measured, sum.predicted});
  }
}

void Samples::hold_out_exchanges(const std::vector<TransferCurve>& curves,
                                 std::vector<HeldOut>& held_out) const {
  std::map<std::pair<int32_t, int32_t>, StepSum> sums;  // by training and step
  for (const Exchange& exchange : exchanges_) {
    const auto curve = std::find_if(curves.begin(), curves.end(), [&](const TransferCurve& each) {
      return each.kind == exchange.key.kind && each.ranks == exchange.key.ranks;
    });
    if (curve != curves.end()) {
      StepSum& sum = sums[{exchange.training, exchange.step}];
      sum.measured += exchange.duration;
      sum.predicted += time_of(sim::interpolate(curve->points, exchange.key.bytes));
    }
  }
  for (const auto& [place, sum] : sums) {
    held_out.push_back({HeldOut::Part::communication, trainings_[static_cast<size_t>(place.first)],
                        sum.measured, sum.predicted});
  }
}

Calibration Samples::calibration() const {
  Calibration calibration;
  for (const auto& [ranks, times] : launches_) {
    calibration.launch_overheads.push_back({ranks, percentiles(times)});
  }
  calibration.kernels = curves(std::nullopt);
  for (const auto& [key, times] : transfers_) {
    std::vector<TransferCurve>& curves = calibration.transfers;
    if (curves.empty() || curves.back().kind != key.kind || curves.back().ranks != key.ranks) {
      curves.push_back({key.kind, key.ranks, {}});
    }
    curves.back().points.push_back({key.bytes, percentiles(times)});
  }
  for (size_t training = 0; training < trainings_.size(); ++training) {
    hold_out_kernels(static_cast<int32_t>(training), calibration.held_out);
  }
  hold_out_exchanges(calibration.transfers, calibration.held_out);
  return calibration;
}

}  // namespace lockstep::cli
