#include "sim/measured_cost.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "model/core/ensure.hpp"
#include "sim/lasting_plan.hpp"
#include "sim/roofline_cost.hpp"

namespace lockstep::sim {

namespace {

Time time_of(double seconds_long) {
  constexpr double longest_s = 9e6;  // below what Time holds
  ensure(seconds_long >= 0, "a measured time is no less than nothing");
  return Time(std::llround(std::min(seconds_long, longest_s) * 1e12));
}

/// Of the curves that are alike but for their number of ranks, those of the nearest number.
template <class Curve, class Alike>
const Curve* nearest(const std::vector<Curve>& curves, int32_t ranks, const Alike& alike) {
  std::vector<int32_t> measured;
  for (const Curve& curve : curves) {
    if (alike(curve)) {
      measured.push_back(curve.ranks);
    }
  }
  if (measured.empty()) {
    return nullptr;
  }
  const int32_t chosen = nearest_ranks(measured, ranks);
  const auto found = std::find_if(curves.begin(), curves.end(), [&](const Curve& curve) {
    return curve.ranks == chosen && alike(curve);
  });
  return &*found;
}

bool is_layer_kernel(Kernel kernel) {
  return kernel == Kernel::layer_forward || kernel == Kernel::layer_backward;
}

}  // namespace

double factor_of(const RangeFactors& range, RangeEnd end) {
  switch (end) {
    case RangeEnd::nominal: return 1;
    case RangeEnd::low: return range.low;
    case RangeEnd::high: return range.high;
  }
  return 1;
}

RangeFactors compute_range(const Calibration& calibration) {
  return range_of(calibration.held_out, HeldOut::Part::compute);
}

RangeFactors communication_range(const Calibration& calibration) {
  return range_of(calibration.held_out, HeldOut::Part::communication);
}

// ---- compute ----

MeasuredComputeCost::MeasuredComputeCost(const MeasuredChoice& choice,
                                         std::unique_ptr<ComputeCost> otherwise)
    : network_(choice.network),
      factor_(factor_of(compute_range(*choice.calibration), choice.end)),
      otherwise_(std::move(otherwise)) {
  const std::vector<KernelCurve>& curves = choice.calibration->kernels;
  for (const KernelCurve& curve : curves) {
    const auto alike = [&curve](const KernelCurve& other) {
      return other.kernel == curve.kernel && other.layer == curve.layer &&
             other.dtype == curve.dtype && fit(other.points).has_value();
    };
    if (const KernelCurve* chosen = nearest(curves, choice.ranks_on_node, alike)) {
      fits_[{curve.kernel, curve.layer, curve.dtype}] = *fit(chosen->points);
    }
  }
}

// Without values an operation of a layer has no operand that shows its type.
MeasuredComputeCost::Key MeasuredComputeCost::key_of(const Op& op) const {
  const bool of_loss = op.kernel == Kernel::loss_forward || op.kernel == Kernel::loss_backward;
  if (network_ != nullptr && is_layer_kernel(op.kernel)) {
    return {op.kernel, network_->layers.at(static_cast<size_t>(op.tag)).kind, op.dtype};
  }
  if (network_ != nullptr && of_loss) {
    return {op.kernel, network_->loss_of(op.tag).kind, op.dtype};
  }
  return {op.kernel, std::nullopt, op.dtype};
}

Time MeasuredComputeCost::duration(const Op& op, RankId rank, Time start) const {
  if (op.kernel == Kernel::timed) {
    return Time(op.work);
  }
  const Key key = key_of(op);
  const auto known = fits_.find(key);
  if (known != fits_.end() && op.stream.device() != host_device) {
    return time_of(known->second.seconds(Flops(op.work), memory_traffic(op)) * factor_);
  }
  const std::string layer = key.layer ? fmt::format("{} ", name_of(*key.layer)) : "";
  const std::string type =
      key.dtype == DType::fp32 ? "" : fmt::format(" on {}", name_of(key.dtype));
  const char* where = op.stream.device() == host_device ? " on the host" : "";
  not_measured_.insert(fmt::format("{}{}{}{}", layer, name_of(op.kernel), type, where));
  return otherwise_->duration(op, rank, start);
}

std::optional<Time> measured_launch_overhead(const MeasuredChoice& choice) {
  const std::vector<LaunchOverhead>& measured = choice.calibration->launch_overheads;
  const LaunchOverhead* chosen =
      nearest(measured, choice.ranks_on_node, [](const LaunchOverhead&) { return true; });
  if (chosen == nullptr) {
    return std::nullopt;
  }
  const double factor = factor_of(compute_range(*choice.calibration), choice.end);
  return time_of(seconds(chosen->time.median) * factor);
}

// ---- communication ----

MeasuredCommunicationCost::MeasuredCommunicationCost(const MeasuredChoice& choice,
                                                     TopologyCommunicationCost& network,
                                                     CommunicationCost& otherwise)
    : curves_(choice.calibration->transfers),
      network_(network),
      otherwise_(otherwise),
      healthy_(network),
      ranks_on_node_(choice.ranks_on_node),
      factor_(factor_of(communication_range(*choice.calibration), choice.end)) {}

const TransferCurve* MeasuredCommunicationCost::curve_of(OpKind kind, int32_t ranks) const {
  const auto found = std::find_if(curves_.begin(), curves_.end(), [&](const TransferCurve& curve) {
    return curve.kind == kind && curve.ranks == ranks;
  });
  return found == curves_.end() ? nullptr : &*found;
}

bool MeasuredCommunicationCost::on_one_node(std::span<const int32_t> ranks) const {
  const Placement& placement = network_.placement();
  const auto node = [&](int32_t rank) {
    return placement.device(rank).value / static_cast<uint32_t>(network_.devices_per_node());
  };
  return std::all_of(ranks.begin(), ranks.end(),
                     [&](int32_t rank) { return node(rank) == node(ranks.front()); });
}

TransferPlan MeasuredCommunicationCost::measured(const TransferCurve& curve, Bytes bytes,
                                                 const TransferPlan& modelled,
                                                 Time healthy_latency) const {
  const Time alone = time_of(interpolate(curve.points, bytes) * factor_);
  const Time fastest = time_of(seconds(curve.points.front().time.median) * factor_);
  const Time added = modelled.latency - healthy_latency;
  if (modelled.links == nullptr || modelled.links->empty() || alone <= fastest) {
    return {alone + added, {}, nullptr, nullptr};
  }
  return lasting(modelled, fastest + added, alone - fastest, link_capacities());
}

TransferPlan MeasuredCommunicationCost::collective(const CollectiveCall& call) {
  const auto ranks = static_cast<int32_t>(call.members.size());
  if (ranks < 2) {
    return otherwise_.collective(call);
  }
  const TransferCurve* curve = curve_of(call.kind, ranks);
  if (curve == nullptr || !on_one_node(call.members)) {
    const char* where = on_one_node(call.members) ? "" : " over several nodes";
    note(fmt::format("{} of {} ranks{}", name_of(call.kind), ranks, where));
    return otherwise_.collective(call);
  }
  return measured(*curve, call.bytes, network_.collective(call), healthy_.collective(call).latency);
}

TransferPlan MeasuredCommunicationCost::point_to_point(int32_t source, int32_t destination,
                                                       Bytes bytes) {
  const TransferPlan modelled = network_.point_to_point(source, destination, bytes);
  const int32_t both[] = {source, destination};
  const TransferCurve* curve = nearest(
      curves_, ranks_on_node_, [](const TransferCurve& each) { return each.kind == OpKind::send; });
  if (source == destination || curve == nullptr || !on_one_node(both)) {
    note(on_one_node(both) ? "send" : "send between nodes");
    return modelled;
  }
  return measured(*curve, bytes, modelled,
                  healthy_.point_to_point(source, destination, bytes).latency);
}

TransferPlan MeasuredCommunicationCost::copy(int32_t rank, DeviceId from, DeviceId to,
                                             Bytes bytes) {
  const TransferPlan modelled = network_.copy(rank, from, to, bytes);
  const TransferCurve* curve = nearest(
      curves_, ranks_on_node_, [](const TransferCurve& each) { return each.kind == OpKind::copy; });
  if (from != host_device || is_off_device(to) || curve == nullptr) {
    note(from == to ? "copy within a memory" : "copy to the host or between devices");
    return modelled;
  }
  return measured(*curve, bytes, modelled, healthy_.copy(rank, from, to, bytes).latency);
}

}  // namespace lockstep::sim
