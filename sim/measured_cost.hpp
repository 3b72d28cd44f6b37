#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/cluster/calibration.hpp"
#include "model/network/network.hpp"
#include "sim/fitted_curve.hpp"
#include "sim/topology_cost.hpp"

namespace lockstep::sim {

/// Which end of the range of a prediction is computed.
enum class RangeEnd : uint8_t { nominal, low, high };

/// The parts of a calibration that a run uses.
struct MeasuredChoice {
  const Calibration* calibration = nullptr;  ///< outlives the costs
  const Network* network = nullptr;          ///< of layer kernels, may be null; outlives the costs
  int32_t ranks_on_node = 1;
  RangeEnd end = RangeEnd::nominal;
};

/// The factor of one end.
double factor_of(const RangeFactors& range, RangeEnd end);
/// Range factors of kernels and of communication.
RangeFactors compute_range(const Calibration& calibration);
RangeFactors communication_range(const Calibration& calibration);

/// Kernels by what was fitted to measurements, with the number of ranks nearest to this run's.
/// Kernels that say their own time take that; what was not measured on that type, or in fewer sizes
/// than a fit needs, is priced by `otherwise`, at its nominal time.
class MeasuredComputeCost final : public ComputeCost {
 public:
  MeasuredComputeCost(const MeasuredChoice& choice, std::unique_ptr<ComputeCost> otherwise);
  Time duration(const Op& op, RankId rank, Time start) const override;

  /// "conv2d backward", of what was asked for and not measured.
  const std::set<std::string>& not_measured() const { return not_measured_; }

 private:
  /// Kernel, layer kind and type; of a kernel without layer the kind is absent.
  struct Key {
    Kernel kernel = Kernel::copy;
    std::optional<LayerKind> layer{};
    DType dtype = DType::fp32;
    auto operator<=>(const Key&) const = default;
  };
  Key key_of(const Op& op) const;

  const Network* network_;
  double factor_;
  std::unique_ptr<ComputeCost> otherwise_;
  std::map<Key, KernelFit> fits_;
  mutable std::set<std::string> not_measured_;  ///< noted where a duration is asked
};

/// Communication as measured where its kind and number of ranks were and all of them are on one
/// node; else by `otherwise`. Its links are those of `network`. Alone it takes what the curve says:
/// the time of the smallest measured message as latency, and the rest on the links of `network`,
/// which carry as much volume as takes that long alone, so that transfers at the same time share
/// them.
class MeasuredCommunicationCost final : public CommunicationCost {
 public:
  /// `otherwise` is `network` or in front of it.
  MeasuredCommunicationCost(const MeasuredChoice& choice, TopologyCommunicationCost& network,
                            CommunicationCost& otherwise);

  TransferPlan collective(const CollectiveCall& call) override;
  TransferPlan point_to_point(int32_t source, int32_t destination, Bytes bytes) override;
  TransferPlan copy(int32_t rank, DeviceId from, DeviceId to, Bytes bytes) override;
  const std::vector<BytesPerSecond>& link_capacities() const override {
    return network_.link_capacities();
  }
  void add_latency(LinkIndex link, Time latency) override { otherwise_.add_latency(link, latency); }

  /// "all_reduce of 4 ranks", of what was asked for and not measured.
  const std::set<std::string>& not_measured() const { return not_measured_; }

 private:
  const TransferCurve* curve_of(OpKind kind, int32_t ranks) const;
  bool on_one_node(std::span<const int32_t> ranks) const;
  TransferPlan measured(const TransferCurve& curve, Bytes bytes, const TransferPlan& modelled,
                        Time healthy_latency) const;
  void note(const std::string& what) { not_measured_.insert(what); }

  const std::vector<TransferCurve>& curves_;
  TopologyCommunicationCost& network_;
  CommunicationCost& otherwise_;
  TopologyCommunicationCost healthy_;  ///< without the latency that faults add
  int32_t ranks_on_node_;
  double factor_;
  std::set<std::string> not_measured_;
};

/// Host time to submit an operation; nothing where it was not measured.
std::optional<Time> measured_launch_overhead(const MeasuredChoice& choice);

}  // namespace lockstep::sim
