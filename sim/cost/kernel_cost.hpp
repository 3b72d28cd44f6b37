#pragma once

#include <memory>

#include "model/network/network.hpp"
#include "sim/cost.hpp"
#include "sim/cost/kernel_price.hpp"

namespace lockstep::sim {

/// Kernels of layers by their shapes (kernel_price.hpp); what has no layer (copies, reductions) by
/// its memory traffic, and what says its own time by that. What runs on the host is priced by
/// `otherwise`.
class KernelComputeCost final : public ComputeCost {
 public:
  /// `network` has the layers of layer kernels; may be null; outlives the costs.
  KernelComputeCost(KernelMachine machine, const Network* network,
                    std::unique_ptr<ComputeCost> otherwise);
  Time duration(const Op& op, RankId rank, Time start) const override;

 private:
  double seconds_of(const Op& op) const;

  KernelMachine machine_;
  double slowest_ = 1;
  const Network* network_;
  std::unique_ptr<ComputeCost> otherwise_;
};

}  // namespace lockstep::sim
